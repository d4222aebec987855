"""The real releases, built from the package index. Minutes and gigabytes: `pytest -m engine`."""

import pytest

from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import EnvironmentSpec, trainer_spec
from rlaudit.engines.inside.doctor import examine
from rlaudit.engines.models.model import DEFAULT_MODEL, ensure_model
from rlaudit.engines.models.model_identity import contents

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(("version", "engine"), [("0.8.5", "V0"), ("0.18.1", "V1")])
def test_an_engine_is_built_starts_and_generates(version: str, engine: str) -> None:
    diagnosis = examine(ensure(EnvironmentSpec("vllm", version, "cpu"), print), print)
    says = {symptom.name: symptom.says for symptom in diagnosis.symptoms}
    assert diagnosis.healthy, diagnosis.symptoms
    assert says["starts"].startswith(engine)


def test_the_default_model_is_made_and_hashed() -> None:
    from pathlib import Path

    model = ensure_model(DEFAULT_MODEL, trainer_spec("cpu"), print)
    assert contents(Path(model.path))["weights"] == model.weight_hash
