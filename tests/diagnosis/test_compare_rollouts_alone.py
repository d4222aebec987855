"""`compare` of rollouts that no trainer has scored: ids and one logprob a token, and samples of one prompt."""

import json

import numpy as np
import pytest
from compare_tokens import compare
from known_contexts import contexts_of, grow, logits_of, without_trainer
from worlds.sibling_tree import at

from rlaudit.cli.app import run
from rlaudit.errors import NotFinished
from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import RAW, Semantics
from rlaudit.meaning.meaning import Kind
from rlaudit.meaning.words import NO_TRAINER

PROMPTS, SAMPLES, TOKENS = 256, 8, 40
END = 10_000
COOL = Semantics(0.7)


def rollouts(sampler, report):
    """A table of which no trainer said anything; sampler, report: logits -> logits."""
    rng = np.random.default_rng(7)
    known = contexts_of(logits_of(rng, 4000), sampler, report)
    return without_trainer(grow(rng, known, PROMPTS, SAMPLES, TOKENS)[0])


def test_raw_logprobs_are_found_without_a_trainer():
    found = compare([rollouts(at(0.7), at(1.0))], COOL, COOL)
    semantic, path, objective = found.layers
    assert semantic.verdict is Verdict.MISMATCH
    assert semantic.causes == ("raw-logprobs",)
    assert {path.verdict, objective.verdict} == {Verdict.NOT_TESTED}
    assert NO_TRAINER in found.not_seen


def test_processed_logprobs_are_what_tokens_were_drawn_from():
    found = compare([rollouts(at(0.7), at(0.7))], COOL, COOL)
    assert found.meaning.kind in {Kind.AGREE, Kind.UNTOLD}
    assert found.layers[0].verdict is not Verdict.MISMATCH


def test_a_temperature_that_nobody_asked_for_is_hidden_and_no_raw_report():
    found = compare([rollouts(at(0.7), at(1.0))], RAW, RAW)
    assert found.meaning.kind is Kind.HIDDEN_SAMPLING


def test_without_samples_of_one_prompt_nothing_can_be_said():
    batch = rollouts(at(0.7), at(1.0))
    with pytest.raises(NotFinished, match="has a trainer logprob"):
        compare([batch.take(np.arange(0, batch.sequences, SAMPLES))], COOL, COOL)


def test_the_command_says_it_in_every_format(tmp_path, capsys):
    batch = rollouts(at(0.7), at(1.0))
    table = tmp_path / "rollouts.jsonl"
    with table.open("w") as out:
        for sequence in range(batch.sequences):
            here = slice(batch.offsets[sequence], batch.offsets[sequence + 1])
            record = {
                "prompt_id": int(batch.prompt_S[sequence]),
                "sample_id": sequence % SAMPLES,
                # An end that is sure: without one, it would be said that ends are missing.
                "token_id": [*batch.token_id_T[here].tolist(), END],
                "rollout_logprob": [*batch.rollout_logprobs_T[here].tolist(), 0.0],
            }
            out.write(json.dumps(record) + "\n")
    formats = [word for name in ("json", "html", "markdown", "junit", "sarif", "github", "concise")
               for word in ("--output", f"{name}:{tmp_path / name}")]  # fmt: skip
    assert run(["compare", str(table), "--temperature", "0.7", "--quiet", "--output", "text", *formats]) == 1
    said = capsys.readouterr().out
    assert "1. semantic  MISMATCH: raw-logprobs" in said
    assert NO_TRAINER in said
    assert "Density of d" not in said
    report = json.loads((tmp_path / "json").read_text())
    assert report["comparisons"][0]["measurements"] == {}
    assert report["token_figures"] == []
    assert run(["report", str(tmp_path / "json"), "--output", "text"]) == 1
