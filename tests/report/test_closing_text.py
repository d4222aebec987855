import json
import re
from pathlib import Path

import pytest
from documents import records

from rlaudit.report.rendering.formats.text import MOST_LINES
from rlaudit.report.rendering.formats.text import render as render_text

REPORT = json.loads((Path(__file__).parents[2] / "examples" / "vllm" / "v0-to-v1" / "report.json").read_text())

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def render(report, width):
    """The end of the text."""
    _, begin, end = ANSI.sub("", render_text(records(report), width)).partition("\nIn short\n")
    return begin + end


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_an_ablation_ends_with_what_was_found_in_forty_lines(width):
    lines = render(REPORT, width).splitlines()
    assert len(lines) <= MOST_LINES + 1
    assert all(len(line) <= width for line in lines)
    said = " ".join(" ".join(lines).split())
    assert "1. semantic MISMATCH: raw logprobs" in said
    assert "2. inference path MATCH" in said
    assert "3. objective NOT TESTED" in said
    assert "next: set logprobs_mode=processed_logprobs" in said
    assert "how sure: " in said


def test_nobody_reads_the_end_of_a_pipe_twice():
    assert render(REPORT, None) == ""


def test_words_of_a_run_move_no_cursor():
    hostile = {**REPORT, "layers": [{**REPORT["layers"][0], "because": "\x1b[2J\nhidden"}, *REPORT["layers"][1:]]}
    assert "\x1b" not in render(hostile, 80)


def test_long_reasons_are_cut_and_say_so():
    long = [{**layer, "because": "word " * 3000} for layer in REPORT["layers"]]
    lines = render({**REPORT, "layers": long}, 60).splitlines()
    assert len(lines) <= MOST_LINES + 1
    assert any(line.endswith(" …") for line in lines)
