"""What standard input is taken for where nobody names it."""

import io
import sys
import time

import pytest
from toy_dialect import PLAIN, Desk

from rlaudit.inspection.files import stdin_name


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
    assert time.process_time() - begun < 3


def test_a_name_that_is_given_wins(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, shown in (([], "stdin.yaml: Toy"), (["--stdin-name", "conf/a.yaml"], "conf/a.yaml: Toy")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PLAIN.encode())))
        assert desk.inspect("-", *words) == 1
        assert shown in desk.out
