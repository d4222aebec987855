"""What Markdown begins with: the answer, one table, three findings and known defects, in fewer than 30 lines."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import documents
import pytest

from rlaudit.cli.app import run
from rlaudit.diagnosis.known_defects import KnownDefect
from rlaudit.layers import Layer
from rlaudit.report.rendering.formats import markdown
from rlaudit.report.rendering.formats.markdown import FOLDED

sys.path.insert(0, str(Path(__file__).parents[1] / "bump"))

CURVES = documents.ROOT / "examples" / "case-studies" / "pipelinerl-137-v0-to-v1" / "curves.json"
HEADER = "| metric | today | new | limit and why | verdict | layer |"
MOST_LINES = 30


def block_of(document: dict[str, Any]) -> list[str]:
    """The lines before what is folded."""
    page = markdown.render(documents.records(document), None)
    block, _, folded = page.partition(FOLDED)
    assert folded.rstrip().endswith("</details>") and folded.startswith("\n\n")
    return block.rstrip().splitlines()


def learned_report(factor: float, tmp_path: Path, length: int = 60, at: int = 0) -> dict[str, Any]:
    """Twelve metrics of ten runs, and a run in which the logprobs are `factor` times as far apart from a step on."""
    import numpy as np

    generator = np.random.default_rng(0)
    keys = ["rollout_corr/k3_kl", "critic/rewards/mean", "actor/entropy", *(f"rollout_corr/chi2_{n}" for n in range(9))]
    logs = []
    for name in (*(f"run{n}" for n in range(10)), "new"):
        values = 0.01 * np.exp(0.05 * generator.standard_normal((length, len(keys))))
        values[at:, 0] *= factor if name == "new" else 1.0
        rows = (
            {"step": step, "data": dict(zip(keys, map(float, row), strict=True))} for step, row in enumerate(values)
        )
        logs.append(tmp_path / f"{name}.jsonl")
        logs[-1].write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    *runs, new = map(str, logs)
    learning = [word for path in runs for word in ("--gates-from", path)]
    out = tmp_path / "report.json"
    run(["curves", new, *learning, "--output", f"json:{out}"])
    document: dict[str, Any] = json.loads(out.read_text())
    return document


@pytest.mark.parametrize(
    ("factor", "at", "outside"), [(1900.0, 0, True), (1.2, 40, True), (1.0, 0, False)], ids=["1,900", "1.2", "none"]
)
def test_a_break_of_a_curve_is_in_the_first_row_and_no_break_in_none(
    factor: float, at: int, outside: bool, tmp_path: Path
) -> None:
    """The published cases: from step 1 on, from step 40 on, and none."""
    lines = block_of(learned_report(factor, tmp_path, at=at))
    assert len(lines) < MOST_LINES and HEADER in lines
    first = lines[lines.index(HEADER) + 2]
    answer = "Other than runs of today's stack: rollout\\_corr/k3\\_kl." if outside else "every limit is kept."
    assert answer.replace("\\_", "_") in lines[2].replace("\\_", "_")
    assert (
        ("| outside |" in first) == outside == ("rollout_corr/k3_kl" in first and "would have passed" in "".join(lines))
    )


def test_an_ablation_begins_with_the_answer_and_both_sides() -> None:
    lines = block_of(documents.ablation())
    assert len(lines) < MOST_LINES
    assert documents.move()["answer"][0] in " ".join(lines[:8])
    cells = [line.split(" | ") for line in lines if line.startswith("| ")]
    assert cells[2][:3] == ["| meaning of the logprobs", "filters-not-replayed", "filters-not-replayed"]
    assert cells[2][4:] == ["same", "semantic |"]


def test_two_trainings_begin_with_what_separated() -> None:
    lines = block_of(json.loads(CURVES.read_text(encoding="utf-8")))
    assert len(lines) < MOST_LINES and lines[0].startswith("# 6 of 6 metrics separated")
    assert "separated at step 1" in lines[lines.index(HEADER) + 2]


def test_however_much_a_report_holds_the_block_fits_a_screen() -> None:
    document = documents.records(documents.ablation())
    defects = [
        KnownDefect(name=f"defect-{n}", layer=Layer.SEMANTIC, about="word " * 200, way_out="", arms=())
        for n in range(9)
    ]
    layers = [replace(layer, because="why " * 300) for layer in document["layers"]] * 4
    document = {**document, "known_defects": defects, "layers": layers, "move": None}  # type: ignore[typeddict-item]
    del document["move"]
    page = markdown.render(document, None).partition(FOLDED)[0].rstrip()
    assert page.count("\n") + 1 < MOST_LINES
    assert "6 further known defects below" in page and "further rows below" in page
    assert max(map(len, page.splitlines())) < 1500


def test_a_bump_begins_with_what_it_brings_and_its_settings(tmp_path: Path, monkeypatch, capsys) -> None:
    from repository import Repository

    made = Repository(tmp_path / "work")
    config = (documents.ROOT / "examples" / "verl" / "v1-to-v1" / "run_grpo.sh").read_text()
    made.commit("before", {"requirements.txt": "vllm==0.11.2\n", "run_grpo.sh": config})
    made.commit("after", {"requirements.txt": "vllm==0.18.1\n"})
    monkeypatch.chdir(made.root)
    run(["inspect", "--bump", "HEAD^..HEAD", "--output", "markdown"])
    lines = capsys.readouterr().out.partition(FOLDED)[0].rstrip().splitlines()
    assert len(lines) < MOST_LINES and lines[0].startswith("# vLLM 0.11.2 → 0.18.1")
    assert lines[2].startswith("The move brings") and HEADER in lines
    row = next(line for line in lines if line.startswith("| async"))
    assert row.split(" | ")[2:3] == ["true"] and "inference path |" in row


def test_other_reports_have_no_block() -> None:
    document = json.loads((documents.ROOT / "examples" / "canary" / "planted" / "report.json").read_text())
    assert FOLDED not in markdown.render(documents.records(document), None)
