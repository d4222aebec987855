"""Which files are looked at, and that nothing on a disk can stop the walk."""

import codecs
import io
import os
import sys
import time
from pathlib import Path

import pytest
from toy_dialect import PLAIN, Desk

from rlaudit.configs.source import LARGEST_BYTES
from rlaudit.inspection.files import Collected, NotText, collect, decode, stdin_name


def found(*paths: Path) -> Collected:
    return collect([str(path) for path in paths], "stdin.yaml", lambda _path: False)


def names(collected: Collected) -> list[str]:
    return [Path(file.path).name for file in collected.files]


def write(path: Path, data: bytes = b"a: 1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_folder_is_walked_in_order_and_hidden_and_foreign_things_are_left_out(tmp_path: Path) -> None:
    for name in (
        "b.yaml",
        "a/z.toml",
        "a/Dockerfile.cuda",
        "c.sh",
        ".git/x.yaml",
        ".hidden.yaml",
        "node_modules/n.json",
    ):
        write(tmp_path / name)
    write(tmp_path / "venv" / "pyvenv.cfg")
    write(tmp_path / "venv" / "lib" / "x.py")
    write(tmp_path / "script", b"#!/bin/bash\n")
    write(tmp_path / "picture.png")
    write(tmp_path / "data")
    collected = found(tmp_path)
    assert names(collected) == ["b.yaml", "c.sh", "script", "Dockerfile.cuda", "z.toml"]
    assert collected.others == 2


def test_a_named_file_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    assert names(found(write(tmp_path / ".env.txt"))) == [".env.txt"]


def test_linked_folders_are_not_entered_and_said(tmp_path: Path) -> None:
    write(tmp_path / "a" / "x.yaml")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "a" / "self").symlink_to("self")
    collected = found(tmp_path)
    assert names(collected) == ["x.yaml"]
    assert [(Path(one.path).name, one.reason) for one in collected.unread] == [
        ("loop", "a linked folder, not followed")
    ]


def test_a_file_is_read_once_however_often_it_is_named_or_linked(tmp_path: Path) -> None:
    path = write(tmp_path / "x.yaml")
    (tmp_path / "y.yaml").symlink_to(path)
    os.link(path, tmp_path / "z.yaml")
    assert names(found(path, tmp_path, path)) == ["x.yaml"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"\0\1", "binary"), (b"\xff\xfe\xff", "not UTF-16-LE"), (b"#" * (LARGEST_BYTES + 1), "larger than 2 MB")],
)
def test_what_cannot_be_text_is_said_and_skipped(tmp_path: Path, data: bytes, reason: str) -> None:
    collected = found(write(tmp_path / "x.yaml", data))
    assert collected.files == ()
    assert collected.unread[0].reason.startswith(reason)
    assert collected.unread[0].named


def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.yaml")
    for paths in ([tmp_path], [tmp_path / "x.yaml"]):
        collected = found(*paths)
        assert "not a regular file" in collected.unread[0].reason


def test_what_is_not_there_and_what_may_not_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    assert [one.reason for one in found(tmp_path / "gone.yaml").unread] == ["no such file or directory"]

    def refuse(*arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    # As root, which tests may run as, no permission bits stop a read.
    write(tmp_path / "x.yaml")
    monkeypatch.setattr("rlaudit.files.read_regular.os.open", refuse)
    assert [one.reason for one in found(tmp_path / "x.yaml").unread] == ["permission denied"]


def test_a_folder_that_may_not_be_listed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a" / "x.yaml")
    scan = os.scandir

    def refuse(path: str) -> object:
        if Path(path).name == "a":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    collected = found(tmp_path)
    assert [(one.reason, one.named) for one in collected.unread] == [("permission denied", False)]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"a: 1\n",
        b"a: 1\r\nb: 2\r\n",
        b"a: 1\rb\n\r",
        "ü: 1\n".encode(),
        codecs.BOM_UTF8 + "ü: 1\r\n".encode(),
        codecs.BOM_UTF16_LE + "ü: 1\r\n".encode("utf-16-le"),
        codecs.BOM_UTF16_BE + "ü: 1\n".encode("utf-16-be"),
    ],
)
def test_text_goes_back_to_the_bytes_it_came_from(data: bytes) -> None:
    text, encoding = decode(data)
    assert not text.startswith("\ufeff")
    assert encoding.encode(text) == data


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x7fELF\0\0", "binary"),
        (b"caf\xe9: 1", "not UTF-8: invalid continuation byte at byte 3"),
        (codecs.BOM_UTF16_LE + b"a", "not UTF-16-LE"),
    ],
)
def test_what_is_no_text_says_why(data: bytes, says: str) -> None:
    with pytest.raises(NotText, match=says):
        decode(data)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("vllm_config:\n  vllm_kwargs: {}\n", "stdin.yaml"),
        ("", "stdin.yaml"),
        ("- vllm serve m\n", "stdin.yaml"),
        ('{"rollout": {}}', "stdin.json"),
        ("[inference.vllm]\nseed = 1\n", "stdin.toml"),
        ("vllm serve m --seed 1\n", "stdin.sh"),
        ("# a comment\nCUDA_VISIBLE_DEVICES=0 python -m verl.trainer.main_ppo \\\n  a=b\n", "stdin.sh"),
        ("#!/usr/bin/env bash\n:\n", "stdin.sh"),
        ("#!/usr/bin/env python3\nx = 1\n", "stdin.py"),
        ("from vllm import LLM\nllm = LLM('m')\n", "stdin.py"),
        ("# built by hand\nARG X=1\nFROM vllm/vllm-openai:v0.9.2\n", "stdin.dockerfile"),
    ],
)
def test_the_kind_is_told_by_the_text(text: str, name: str) -> None:
    assert stdin_name(text) == name


@pytest.mark.parametrize("piece", ["\n", " ", "# x\n", "A=1 ", "ARG \n", "import", "["])
def test_a_long_text_takes_no_longer_than_its_length(piece: str) -> None:
    begun = time.process_time()
    stdin_name(piece * (500_000 // len(piece)))
    assert time.process_time() - begun < 60  # seconds; what is tried from every character takes hours


def test_a_name_that_is_given_wins(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, shown in (([], "stdin.yaml: Toy"), (["--stdin-name", "conf/a.yaml"], "conf/a.yaml: Toy")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PLAIN.encode())))
        assert desk.inspect("-", *words) == 1
        assert shown in desk.out
