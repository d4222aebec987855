"""`rlaudit compare --score`: dumps without trainer logprobs, with their prompts in every form that people have.

The model is the known one of tests/fakes, in its own trainer process; tokens are drawn from it here.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from laboratories import Laboratory, known_model

WORDS = [f"question {number} please" for number in range(16)]
IDS = [[known_model.token_of(word) for word in text.split()] for text in WORDS]
SAMPLES, TOKENS = 4, 12


def sequences(temperature: float, reported: float):
    """Completions sampled at one temperature, with logprobs reported at another."""
    generator = np.random.default_rng(3)
    logits = np.array([known_model.logits_after(token) for token in range(known_model.VOCABULARY)])
    for prompt, ids in enumerate(IDS):
        for sample in range(SAMPLES):
            last, tokens, logprobs = ids[-1], [], []
            for _ in range(TOKENS):
                drawn_from = np.array(known_model.log_softmax(logits[last] / temperature))
                said = known_model.log_softmax(logits[last] / reported)
                last = int(generator.choice(len(drawn_from), p=np.exp(drawn_from)))
                tokens.append(last)
                logprobs.append(said[last])
            yield {"prompt_id": prompt, "sample_id": sample, "token_id": tokens, "rollout_logprob": logprobs}


def dump(path: Path, *, reported: float = 0.7, **prompts):
    """JSONL without trainer logprobs; `prompts` are columns with one value per prompt."""
    path.parent.mkdir(exist_ok=True)
    lines = [
        {**one, **{name: values[one["prompt_id"]] for name, values in prompts.items()}}
        for one in sequences(0.7, reported)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def scored(laboratory: Laboratory, path: Path, *more: str):
    """The exit code, the document, and what was printed."""
    report = laboratory.folder / "compare.json"
    report.unlink(missing_ok=True)
    words = ["compare", str(path), "--score", str(laboratory.model), "--score-dtype", "float32", "--cpu", "--quiet"]
    done = laboratory.command(*words, "--temperature", "0.7", "--output", f"json:{report}", *more)
    return done, json.loads(report.read_text()) if report.exists() else {}


def test_a_dump_without_trainer_logprobs_is_judged_by_the_model(shared_laboratory: Laboratory) -> None:
    _, document = scored(shared_laboratory, dump(shared_laboratory.folder / "honest.jsonl", prompt_token_ids=IDS))
    assert document["comparisons"][0]["measurements"]["k3"]["value"] < 1e-9
    assert [layer["verdict"] for layer in document["layers"]][:2] == ["match", "match"]
    assert any("the figures are of the scored tokens only" in line for line in document["comparisons"][0]["notes"])


def test_raw_logprobs_are_named_without_any_logprob_of_the_trainer(shared_laboratory: Laboratory) -> None:
    raw = dump(shared_laboratory.folder / "raw.jsonl", reported=1.0, prompt_token_ids=IDS)
    done, document = scored(shared_laboratory, raw)
    assert document["layers"][0]["cause"].startswith("raw logprobs")
    assert done.exit_code == 1


@pytest.mark.parametrize("form", ["prompt", "prompts.jsonl"])
def test_prompts_that_are_texts_become_tokens_by_the_models_tokenizer_and_it_is_said(
    shared_laboratory: Laboratory, form: str
) -> None:
    path = shared_laboratory.folder / form / "rollouts.jsonl"
    if form == "prompt":
        dump(path, prompt=WORDS)
    else:
        dump(path)
        beside = [{"prompt_id": number, "prompt": text} for number, text in enumerate(WORDS)]
        path.with_name("prompts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in beside))
    _, document = scored(shared_laboratory, path)
    assert document["comparisons"][0]["measurements"]["k3"]["value"] < 1e-9
    assert any("were tokenised here" in line for line in document["comparisons"][0]["notes"])


def test_chat_messages_go_through_the_models_template(shared_laboratory: Laboratory) -> None:
    messages = [[{"role": "user", "content": text}] for text in WORDS]
    _, document = scored(shared_laboratory, dump(shared_laboratory.folder / "chat.jsonl", messages=messages))
    assert document["comparisons"][0]["measurements"]["k3"]["value"] < 1e-9


def test_a_run_of_ablate_brings_the_tokens_of_its_prompts(shared_laboratory: Laboratory) -> None:
    path = dump(shared_laboratory.folder / "run" / "tokens.jsonl")
    cell = path.parent / "cells" / "1234"
    cell.mkdir(parents=True)
    (cell / "result.json").write_text(json.dumps({"status": "ok", "prompt_token_ids": IDS}))
    _, document = scored(shared_laboratory, path)
    assert document["comparisons"][0]["measurements"]["k3"]["value"] < 1e-9


def test_what_is_missing_for_scoring_is_said(shared_laboratory: Laboratory) -> None:
    done, _ = scored(shared_laboratory, dump(shared_laboratory.folder / "none.jsonl"))
    assert done.exit_code == 2
    assert "--score needs the prompts" in done.stderr
    path = shared_laboratory.folder / "text.jsonl"
    lines = [{**one, "prompt_token_ids": IDS[one["prompt_id"]]} for one in sequences(0.7, 0.7)]
    path.write_text("".join(json.dumps({k: v for k, v in line.items() if k != "token_id"}) + "\n" for line in lines))
    done, _ = scored(shared_laboratory, path)
    assert done.exit_code == 2
    assert "the token ids of completions" in done.stderr
