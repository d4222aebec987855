"""A pin of a framework that does not run with the new vLLM is an error, at the release where its thread says so."""

from pathlib import Path

import pytest
from packaging.version import Version
from reading import source_of

from rlaudit.configs.dialects.declared import declared
from rlaudit.rules.audit.audit import audit_of
from rlaudit.rules.framework_moves_too import RULE
from rlaudit.vllm.machine import Machine

OPENRLHF = "python3 -m openrlhf.cli.train_ppo_ray --pretrain org/policy --vllm_num_engines 4\n"


@pytest.mark.parametrize(
    ("pin", "after", "severities"),
    [("0.9.4", "0.16.0", ["error"]), ("0.9.5", "0.16.0", []), ("0.9.4", "0.15.1", [])],
)
def test_openrlhf_before_0_9_5_does_not_sync_with_vllm_0_16(
    pin: str, after: str, severities: list[str], tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text(f"openrlhf=={pin}\n")
    source = source_of(OPENRLHF, str(tmp_path / "train.sh"))
    versions = Version("0.15.0"), Version(after)
    before, moved = (declared()["openrlhf"].read(source, version)[0] for version in versions)
    assert [one.severity for one in RULE.check(audit_of(before, moved, versions, Machine()))] == severities
