"""A sealed folder: whatever happens to its files afterwards has a name."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from rlaudit.engines.cells.seal import LARGEST, SEAL, Damage, Mark, Seal, read_seal, write_seal

NAMES = ("result.json", "samples.jsonl", "usage.json")


def sealed(folder: Path, of: str = "key") -> Path:
    folder.mkdir(parents=True)
    for name in NAMES:
        (folder / name).write_text(json.dumps({"of": of, "name": name, "figures": list(range(50))}))
    write_seal(folder, of, NAMES)
    return folder


def damage(folder: Path, of: str = "key") -> Damage | None:
    seal = read_seal(folder, of)
    return seal.damage(folder) if isinstance(seal, Seal) else seal


def test_a_folder_that_nobody_touched_is_whole(tmp_path: Path) -> None:
    assert damage(sealed(tmp_path / "a")) is None


def cut(path: Path, random: Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: random.randrange(len(data))])


def flip(path: Path, random: Random) -> None:
    data = bytearray(path.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)


def delete(path: Path, random: Random) -> None:
    path.unlink()


def lengthen(path: Path, random: Random) -> None:
    path.write_bytes(path.read_bytes() * 2)


def exchange(path: Path, random: Random) -> None:
    other = random.choice([one for one in sorted(path.parent.iterdir()) if one != path])
    own, foreign = path.read_bytes(), other.read_bytes()
    path.write_bytes(foreign)
    other.write_bytes(own)


def link_to_nothing(path: Path, random: Random) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def pipe(path: Path, random: Random) -> None:
    path.unlink()
    os.mkfifo(path)


def folder_instead(path: Path, random: Random) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("kind", [cut, flip, delete, lengthen, exchange, link_to_nothing, pipe, folder_instead])
@pytest.mark.parametrize("name", [*NAMES, SEAL])
def test_any_damage_to_any_file_is_named(tmp_path: Path, kind: Callable[[Path, Random], None], name: str) -> None:
    whole = sealed(tmp_path / "whole")
    for seed in range(8):
        folder = tmp_path / str(seed)
        shutil.copytree(whole, folder)
        kind(folder / name, Random(seed))
        found = damage(folder)
        assert found is not None
        assert found.path.parent == folder
        assert kind is exchange or name in {found.path.name, SEAL}


def test_the_files_of_another_folder_do_not_pass_for_this_one_s(tmp_path: Path) -> None:
    one, other = sealed(tmp_path / "one", "one"), sealed(tmp_path / "other", "other")
    shutil.copytree(other, one, dirs_exist_ok=True)
    found = damage(one, "one")
    assert str(found) == f"{one / SEAL} belongs to other and not to one"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        b" " * (LARGEST + 1),
        b'{"format": 1, "of": 1, "files": []}',
        b'{"format": 1, "of": "key", "files": {}}',
        b'{"format": 2, "of": "key", "files": {}}',
        b'{"format": 1, "of": "key", "files": {"a": 3}}',
    ],
)
def test_what_is_no_seal_is_damage_and_no_crash(tmp_path: Path, content: bytes) -> None:
    folder = sealed(tmp_path / "a")
    (folder / SEAL).write_bytes(content)
    found = damage(folder)
    assert found is not None
    assert found.path == folder / SEAL


def test_a_hostile_seal_makes_nobody_wait(tmp_path: Path) -> None:
    folder = sealed(tmp_path / "a")
    os.mkfifo(folder / "pipe")
    mark = Mark(0, "0" * 64)
    (folder / SEAL).write_bytes(Seal("key", {"pipe": mark, "/dev/zero": mark}).as_bytes())
    assert str(damage(folder)) == f"{folder / 'pipe'} is missing"


def test_a_bit_of_the_seal_is_the_seal_s_and_no_other_file_s(tmp_path: Path) -> None:
    folder = sealed(tmp_path / "a")
    whole = (folder / SEAL).read_bytes()
    for seed in range(60):
        (folder / SEAL).write_bytes(whole)
        flip(folder / SEAL, Random(seed))
        found = damage(folder)
        assert found is None or found.path == folder / SEAL
