"""A model is another one as soon as a file that decides a token is, and the same one otherwise."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rlaudit.engines import file_digest as digests
from rlaudit.engines.file_digest import file_digest
from rlaudit.engines.models.model_identity import contents, identities_in, model_identity

DECIDES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "qwen.tiktoken",
    "chat_template.jinja",
    "additional_chat_templates/tool_use.jinja",
    "adapter_config.json",
    "adapter_model.safetensors",
    "lora/adapter_model.safetensors",
    "model.safetensors.index.json",
    "model-00001-of-00002.safetensors",
    "modeling_own.py",
    "own/attention.py",
)
DECIDES_NOTHING = (
    "README.md",
    "loss.png",
    ".gitattributes",
    ".git/HEAD",
    "optimizer.pt",
    "training_args.bin",
    "checkpoint-500/config.json",
    "checkpoint-500/model.safetensors",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint with everything that one may have."""
    for name in (*DECIDES, *DECIDES_NOTHING):
        path = tmp_path / "m" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"file": name}))
    return tmp_path / "m"


def edit(path: Path) -> None:
    """Another content of the same size and times, as `cp -p` or a synchronised clock leave it."""
    before = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def delete(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [edit, cut, delete], ids=["edited", "cut off", "deleted"])
def test_a_file_that_decides_a_token_makes_another_model(folder: Path, change: Callable[[Path], None]) -> None:
    seen = [model_identity(str(folder))]
    for name in DECIDES:
        change(folder / name)
        assert model_identity(str(folder)) not in seen, name
        seen.append(model_identity(str(folder)))


def test_what_no_engine_reads_makes_no_other_model(folder: Path) -> None:
    before = model_identity(str(folder))
    for name in DECIDES_NOTHING:
        edit(folder / name)
        assert model_identity(str(folder)) == before, name


def test_a_new_file_makes_another_model_and_a_changed_name_does_too(folder: Path) -> None:
    before = contents(folder)
    (folder / "added_tokens.json").write_text("{}")
    added = contents(folder)
    assert (added["weights"], added["files"] == before["files"]) == (before["weights"], False)
    (folder / "added_tokens.json").rename(folder / "added_tokens_2.json")
    assert contents(folder)["files"] not in {before["files"], added["files"]}


def test_a_hub_id_is_known_by_its_commit() -> None:
    assert model_identity("org/model", "abc123") != model_identity("org/model", "def456")
    assert model_identity("org/model", "abc123") == model_identity("org/model", "abc123")


def test_folders_of_models_that_engine_arguments_name_count_as_well(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    arguments = {
        "tokenizer": str(folder),
        "speculative_config": {"model": [str(folder / "lora")]},
        "download_dir": str(tmp_path / "cache"),
        "dtype": "auto",
        "seed": 3,
    }
    (folder / "lora" / "adapter_config.json").write_text("{}")
    before = identities_in(arguments)
    assert set(before) == {str(folder), str(folder / "lora")}
    edit(folder / "lora" / "adapter_config.json")
    assert identities_in(arguments) != before


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file large enough that its digest is kept, and old enough."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(digests, "WORTH_KEEPING", 1)
    later = time.time() + 60
    monkeypatch.setattr("time.time", lambda: later)
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"weights")
    return path


def test_a_large_file_is_read_once_as_long_as_nobody_touches_it(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = file_digest(large)
    monkeypatch.setattr("hashlib.file_digest", None)
    assert file_digest(large) == first


def test_a_file_of_the_same_size_and_times_is_read_again(large: Path) -> None:
    first = file_digest(large)
    edit(large)
    assert file_digest(large) != first


def test_the_digest_of_a_file_that_was_just_written_is_not_kept(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = large.stat().st_mtime
    monkeypatch.setattr("time.time", lambda: written)
    first = file_digest(large)
    # In the same tick of the clock, all that the digest is kept under may stay the same.
    assert not list(large.parent.glob("cache/rlaudit/digests/*"))
    edit(large)
    assert file_digest(large) != first


@pytest.mark.parametrize("left", [b"", b"half", b"\xff" * 64], ids=["empty", "cut off", "no text"])
def test_a_damaged_cache_of_digests_costs_time_only(large: Path, left: bytes) -> None:
    first = file_digest(large)
    (kept,) = large.parent.glob("cache/rlaudit/digests/*")
    kept.write_bytes(left)
    assert file_digest(large) == first


def test_a_cache_that_cannot_be_written_is_done_without(large: Path) -> None:
    (large.parent / "cache").write_text("a file")
    assert len(file_digest(large)) == 64
