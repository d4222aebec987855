"""Limits that follow from the size of the weights."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from rlaudit.errors import NotFinished
from rlaudit.laboratory.moving_weights import float32_bytes, require_room, seconds_to_move, stored_bytes


def model_in(folder: Path, size: int) -> str:
    (folder / "config.json").write_text('{"torch_dtype": "bfloat16"}')
    (folder / "model.safetensors").write_bytes(b"0" * size)
    return str(folder)


def test_a_trainer_holds_bfloat16_weights_in_twice_the_room(tmp_path: Path) -> None:
    model = model_in(tmp_path, 1000)
    assert (stored_bytes(model), float32_bytes(model)) == (1000, 2000)


def test_a_model_of_unknown_size_adds_nothing_to_a_limit(tmp_path: Path) -> None:
    assert seconds_to_move(stored_bytes(str(tmp_path)), 5) == 0.0


def test_time_grows_with_size_and_with_how_often_it_is_moved() -> None:
    assert seconds_to_move(16 * 10**9, 3) == 3 * seconds_to_move(16 * 10**9) > 600


def test_copies_that_do_not_fit_are_refused_before_they_are_written_and_those_there_count_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=25 * 10**9))
    (tmp_path / "version-1").mkdir()
    folders = [tmp_path / "checkpoints" / "version-2", tmp_path / "checkpoints" / "truncated", tmp_path / "version-1"]
    require_room(12 * 10**9, folders)
    with pytest.raises(NotFinished, match=r"2 copies of the weights take 32.0 GB, and .* has 25.0 GB free"):
        require_room(16 * 10**9, folders)
