"""The script that derives checkpoints, run where it runs: in the trainer's environment (`pytest -m engine`)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlaudit.engines.cells.launch import Outcome, launch
from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import trainer_spec
from rlaudit.laboratory.studies.updates.checkpoints import DERIVE

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


def read_checkpoint(folder: Path) -> dict[str, Any]:
    content = (folder / "model.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(content[8 + size :][slice(*told["data_offsets"])], np.float32).reshape(told["shape"])
        for name, told in header.items()
    }


@pytest.fixture
def model(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    tensors = {name: random.normal(0, 1, (8, 4)).astype(np.float32) for name in (EMBEDDING, OUTPUT)}
    write_checkpoint(tmp_path / "model", tensors, tied=True)
    return tmp_path / "model"


def derive(model: Path, name: str, *orders: dict[str, Any]) -> tuple[Outcome, Path]:
    environment = ensure(trainer_spec("cpu"), print)
    cell, output = model.parent / f"{name}-cell", model.parent / name
    cell.mkdir()
    job = {"script": str(DERIVE), "model": str(model), "revision": None, "output": str(output), "make": list(orders)}
    (cell / "job.json").write_text(json.dumps(job))
    return launch(cell, environment.command, environment.variables, 600.0), output


STEP = {"name": "version-1", "after": "", "scale": 0.1, "seed": 3}


@pytest.mark.engine
def test_a_version_is_a_small_known_step_and_the_same_every_time(model: Path) -> None:
    _, first = derive(model, "first", STEP)
    _, second = derive(model, "second", STEP)
    old, new, again = (
        read_checkpoint(model),
        read_checkpoint(first / "version-1"),
        read_checkpoint(second / "version-1"),
    )
    for name, tensor in old.items():
        size = np.sqrt(np.mean((new[name] - tensor) ** 2)) / np.sqrt(np.mean(tensor**2))
        assert 0.05 < size < 0.2
        assert np.array_equal(new[name], again[name])


@pytest.mark.engine
def test_a_mixture_that_parts_head_and_embedding_is_written_untied(model: Path) -> None:
    mixture = {"name": "mixture", "new": "version-1", "old": "", "old_parts": [HEAD]}
    _, output = derive(model, "out", STEP, mixture)
    mixed, old, new = read_checkpoint(output / "mixture"), read_checkpoint(model), read_checkpoint(output / "version-1")
    assert json.loads((output / "mixture" / "config.json").read_text())["tie_word_embeddings"] is False
    assert np.array_equal(mixed[HEAD], old[EMBEDDING])
    assert np.array_equal(mixed[EMBEDDING], new[EMBEDDING])


@pytest.mark.engine
def test_a_mixture_of_a_layer_stays_tied(model: Path) -> None:
    mixture = {"name": "mixture", "new": "version-1", "old": "", "old_parts": ["model.layers.0.*"]}
    _, output = derive(model, "out", STEP, mixture)
    assert set(read_checkpoint(output / "mixture")) == {EMBEDDING, OUTPUT}
    assert np.array_equal(read_checkpoint(output / "mixture")[OUTPUT], read_checkpoint(model)[OUTPUT])
