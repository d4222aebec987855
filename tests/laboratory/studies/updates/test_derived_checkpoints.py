"""The script that derives checkpoints, run where it runs: in the trainer's environment (`pytest -m engine`)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlaudit.engines.cells.launch import launch
from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import trainer_spec
from rlaudit.laboratory.studies.updates.checkpoints import DERIVE

pytestmark = [pytest.mark.engine, pytest.mark.beside]

Tensors = Mapping[str, "np.ndarray[Any, np.dtype[np.float32]]"]
EMBEDDING, HEAD, OUTPUT = "model.embed_tokens.weight", "lm_head.weight", "model.layers.0.self_attn.o_proj.weight"


def write_checkpoint(folder: Path, tensors: Tensors, tied: bool) -> None:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"tie_word_embeddings": tied}))
    header, data = {}, b""
    for name, tensor in tensors.items():
        end = len(data) + tensor.nbytes
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), end]}
        data += tensor.tobytes()
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)


def read_checkpoint(folder: Path, name: str = "model") -> dict[str, Any]:
    content = (folder / f"{name}.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(content[8 + size :][slice(*told["data_offsets"])], np.float32).reshape(told["shape"])
        for name, told in header.items()
    }


def derive(model: Path, name: str, *orders: dict[str, Any]) -> Path:
    environment = ensure(trainer_spec("cpu"), print)
    cell, output = model.parent / f"{name}-cell", model.parent / name
    cell.mkdir()
    job = {"script": str(DERIVE), "model": str(model), "revision": None, "output": str(output), "make": list(orders)}
    (cell / "job.json").write_text(json.dumps(job))
    outcome = launch(cell, environment.command, environment.variables, 600.0)
    assert outcome.status == "ok", outcome.failure
    return output


STEP = {"name": "version-1", "scale": 0.1, "seed": 3}
PARTED = {"name": "parted", "old_parts": [HEAD]}
ADAPTER = {"name": "adapter-1", "adapter": 2, "scale": 0.1, "seed": 3}
OF_A_LAYER = {"name": "of a layer", "old_parts": [OUTPUT]}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random, folder = np.random.default_rng(0), tmp_path_factory.mktemp("derived") / "model"
    tensors = {name: random.normal(0, 1, (8, 4)).astype(np.float32) for name in (EMBEDDING, OUTPUT)}
    write_checkpoint(folder, tensors, tied=True)
    return folder


@pytest.fixture(scope="module")
def made(model: Path) -> Path:
    mixtures = [{**order, "new": str(model.parent / "made" / "version-1")} for order in (PARTED, OF_A_LAYER)]
    return derive(model, "made", STEP, *mixtures, ADAPTER, {**ADAPTER, "name": "adapter-0", "scale": 0.0})


def test_a_version_is_a_small_known_step_and_the_same_every_time(model: Path, made: Path) -> None:
    again = read_checkpoint(derive(model, "again", STEP) / "version-1")
    old, new = read_checkpoint(model), read_checkpoint(made / "version-1")
    for name, tensor in old.items():
        size = np.sqrt(np.mean((new[name] - tensor) ** 2)) / np.sqrt(np.mean(tensor**2))
        assert 0.05 < size < 0.2
        assert np.array_equal(new[name], again[name])


def test_a_mixture_that_parts_head_and_embedding_is_written_untied(model: Path, made: Path) -> None:
    mixed, old, new = read_checkpoint(made / "parted"), read_checkpoint(model), read_checkpoint(made / "version-1")
    assert json.loads((made / "parted" / "config.json").read_text())["tie_word_embeddings"] is False
    assert np.array_equal(mixed[HEAD], old[EMBEDDING])
    assert np.array_equal(mixed[EMBEDDING], new[EMBEDDING])


def test_a_mixture_of_a_layer_stays_tied(model: Path, made: Path) -> None:
    mixed = read_checkpoint(made / "of a layer")
    assert set(mixed) == {EMBEDDING, OUTPUT}
    assert np.array_equal(mixed[OUTPUT], read_checkpoint(model)[OUTPUT])


def test_an_adapter_times_its_scale_is_what_was_merged(model: Path, made: Path) -> None:
    adapter = read_checkpoint(made / "adapter-1" / "adapter", "adapter_model")
    old, merged = read_checkpoint(model), read_checkpoint(made / "adapter-1")
    config = json.loads((made / "adapter-1" / "adapter" / "adapter_config.json").read_text())
    module = "base_model.model." + OUTPUT.removesuffix(".weight")
    step = (
        adapter[f"{module}.lora_B.weight"] @ adapter[f"{module}.lora_A.weight"] * (config["lora_alpha"] / config["r"])
    )
    assert np.allclose(merged[OUTPUT], old[OUTPUT] + step, atol=1e-6) and 0.03 < np.std(step) < 0.3
    assert np.array_equal(merged[EMBEDDING], old[EMBEDDING])
    assert config["target_modules"] == ["o_proj"]


def test_an_adapter_of_no_size_changes_nothing_and_is_not_merged(made: Path) -> None:
    adapter = read_checkpoint(made / "adapter-0" / "adapter", "adapter_model")
    assert {bool(tensor.any()) for name, tensor in adapter.items() if "lora_B" in name} == {False}
    assert not (made / "adapter-0" / "model.safetensors").exists()
