"""A dump as it is found on a disk that was full: the command names what is broken, uses the rest and says so."""

import json
from pathlib import Path

import numpy as np
import pytest

from rlaudit.cli.app import run


def sound_lines(prompts: int = 40, samples: int = 2, tokens: int = 24) -> list[str]:
    """Honest tokens: drawn from what the engine reports, and the trainer agrees to 1e-4."""
    generator = np.random.default_rng(5)
    lines = []
    for sequence in range(prompts * samples):
        logits = generator.standard_normal((tokens, 32)) * 2
        logprobs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        drawn = np.argmax(logprobs + generator.gumbel(size=logprobs.shape), axis=1)
        own = logprobs[np.arange(tokens), drawn]
        record = {
            "prompt_id": sequence // samples,
            "sample_id": sequence % samples,
            "token_id": drawn.tolist(),
            "rollout_logprob": own.tolist(),
            "trainer_logprob": np.minimum(own + 1e-4 * generator.standard_normal(tokens), 0.0).tolist(),
            "trainer_entropy": (-(np.exp(logprobs) * logprobs).sum(axis=1)).tolist(),
        }
        lines.append(json.dumps(record) + "\n")
    return lines


def faulty(lines: list[str]) -> str:
    """A bad line 11, a line of the other schema 21, unequal lists 31, and a last line that was cut off."""
    token = {"prompt_id": "t", "sample_id": 0, "position": 0, "token_id": 1, "rollout_logprob": -0.5}
    unequal = {"prompt_id": "u", "sample_id": 0, "rollout_logprob": [-0.5, -0.2], "trainer_logprob": [-0.5]}
    inserted = ['{"prompt_id": "x", oops\n', json.dumps(token) + "\n", json.dumps(unequal) + "\n"]
    return "".join(
        [*lines[:10], inserted[0], *lines[10:19], inserted[1], *lines[19:28], inserted[2], *lines[28:], lines[0][:300]]
    )


def compared(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str, dict[str, object]]:
    report = path.with_suffix(".report")
    code = run(["compare", str(path), "--temperature", "1", "--quiet", "--output", f"json:{report}", *more])
    return code, capsys.readouterr().err, json.loads(report.read_text())


def test_line_numbers_are_named_the_rest_is_used_and_the_exit_code_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sound, broken = tmp_path / "sound.jsonl", tmp_path / "broken.jsonl"
    lines = sound_lines()
    sound.write_text("".join(lines))
    broken.write_text(faulty(lines))
    expected, said, whole = compared(sound, capsys)
    assert expected != 3, whole["layers"]
    assert said == ""
    code, said, partial = compared(broken, capsys)
    assert code == 3
    assert [line.split(":")[2] for line in said.splitlines()] == ["11", "21", "31", "84"]
    assert "mixed schemas" in said
    assert "cut off" in said
    assert partial["comparisons"][0]["measurements"] == whole["comparisons"][0]["measurements"]  # type: ignore[index]
    allowed, said, report = compared(broken, capsys, "--allow-partial")
    assert allowed == expected
    assert ":11:" in said
    assert any("allowed by --allow-partial" in line for line in report["not_seen"])  # type: ignore[attr-defined]
