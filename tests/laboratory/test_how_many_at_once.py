"""How many cells a machine runs at once, and how many GPUs each is given."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlaudit.engines.cells.at_once import AtOnce
from rlaudit.engines.cells.executor import OneAtATime
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.nvidia_driver import Device
from rlaudit.engines.hardware.shares import split
from rlaudit.engines.models.model_files import ModelFiles
from rlaudit.errors import NotFinished
from rlaudit.laboratory.fit import gpus_to_score
from rlaudit.laboratory.place import cells_at_once, local

GIB = 2**30


def machine(gpus: int, memory_gib: int) -> Accelerator:
    devices = tuple(Device(index, f"GPU-{index}", "an H100", 81_559, "sm90") for index in range(gpus))
    return Accelerator("cuda", "an H100", devices, "570.1", 32, memory_gib * 1024)


def at(gpus: int, memory_gib: int, asked: int | None, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Any:
    monkeypatch.setattr("rlaudit.engines.hardware.gpu_memory.used_memory_mib", lambda devices: (0,) * len(devices))
    plan: Any = SimpleNamespace(recipe=SimpleNamespace(model="smollm2-135m-instruct", revision=None))
    accelerator, shares = split(machine(gpus, memory_gib), asked or 1)
    with local(shares, cells_at_once(plan, accelerator, shares, asked))(folder, accelerator, print) as executor:
        return executor


def test_each_gpu_runs_a_cell_as_far_as_the_hosts_memory_holds_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for gpus, memory_gib, most in ((8, 512, 8), (8, 32, 4)):
        executor = at(gpus, memory_gib, None, monkeypatch, tmp_path)
        assert isinstance(executor, AtOnce) and executor.most == most
    assert at(8, 512, 3, monkeypatch, tmp_path).most == 3
    # One GPU, little memory or a wish: one at a time.
    for gpus, memory_gib, asked in ((1, 512, None), (8, 12, None), (8, 512, 1)):
        assert isinstance(at(gpus, memory_gib, asked, monkeypatch, tmp_path), OneAtATime)


def test_more_than_the_memory_holds_is_refused_with_what_it_holds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(NotFinished) as refused:
        at(8, 32, 8, monkeypatch, tmp_path)
    assert "may need 64 GiB" in refused.value.message and refused.value.hint == "Give at most --jobs 4."


def test_the_trainer_is_given_one_gpu_only_where_the_weights_surely_fit() -> None:
    files = ModelFiles("a model", {"dtype": "bfloat16"}, stored_bytes=40 * GIB)
    assert gpus_to_score(machine(4, 512), files) == {"bfloat16": 1, "float16": 1}
    assert gpus_to_score(machine(4, 512), ModelFiles("unknown")) == {}
