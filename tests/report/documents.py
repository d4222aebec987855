"""Documents of every command, with everything that can be drawn, made by the commands' own code."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rlaudit.diagnosis.answer import answer
from rlaudit.diagnosis.move import Change, Move, Side, changes_of
from rlaudit.layers import Layer, Verdict, judged_as
from rlaudit.report.report import Report
from rlaudit.report.schema import report_type
from rlaudit.text.plain import plain
from rlaudit.tokens import token_figures as figures_of_tokens

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "vllm" / "v0-to-v1" / "report.json"
CASE = ROOT / "examples" / "case-studies" / "pipelinerl-137-v0-to-v1"
HOSTILE = (
    '</title></style></svg><script>alert("ran")</script><img src="https://example.invalid/x.png" onerror="alert(1)">'
    '<a href="javascript:alert(2)">$\\frac{1}{0}$ &amp; \' " ` | \x1b[31m\u202e\ud800 日本語 ${7*7} {{7*7}}'
)


def records(document: dict[str, Any]) -> Report:
    """What formats get: the records of a document."""
    return report_type().validate_python(document)


def ablation() -> dict[str, Any]:
    """The example of a real run, with figures of tokens of every arm."""
    document: dict[str, Any] = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    document["token_figures"] = [token_figures(arm["name"], arm["block"], arm) for arm in document["arms"]]
    document["move"] = move()
    return document


def move() -> dict[str, Any]:
    """A move that changes nothing of a mismatch, brings the engine nearer, and has a fix."""
    match, off, untested = Verdict.MATCH, Verdict.MISMATCH, Verdict.NOT_TESTED
    today = Side(vllm="0.8.5", layers=(off, untested, untested), causes=("filters-not-replayed",))
    moved = Move(
        today=today,
        after=replace(today, vllm="0.18.1"),
        fixed=replace(today, layers=(match, match, match), causes=()),
        changes=changes_of(today, today, (Change.NEARER, "k3 0.0192 -> 0.0025 nats")),
    )
    first = judged_as(Layer.SEMANTIC, off, "", following="set top_p=1")
    return dict(plain(replace(moved, answer=answer(moved, first))))


def token_figures(
    name: str, block: str | None, arm: dict[str, Any] | None = None, tokens: int = 2000
) -> dict[str, Any]:
    """Of tokens that are as far apart as the arm says."""
    rng = np.random.default_rng(3)
    found = (arm or {}).get("measurements", {}).get("k3")
    spread = np.sqrt(2 * found["value"]) if found else 0.01
    rollout_T = -rng.exponential(1.0, tokens)
    trainer_T = np.minimum(rollout_T + rng.normal(0, spread, tokens), 0.0)
    positions_T, entropy_T = np.arange(tokens) % 64, rng.gamma(1.5, 1.0, tokens)
    found = figures_of_tokens.token_figures(name, block, rollout_T, trainer_T, positions_T, entropy_T)
    written: dict[str, Any] = plain(found)
    return written


def comparison() -> dict[str, Any]:
    """The example of a log of which two parts are compared, with version lags, and neither is decided."""
    document: dict[str, Any] = json.loads((CASE / "compare.json").read_text(encoding="utf-8"))
    names, (compared,), (figures,) = (
        ("steps 1 to 8", "steps 9 to 16"),
        document["comparisons"],
        document["token_figures"],
    )
    document["comparisons"] = [{**copy.deepcopy(compared), "name": name} for name in names]
    document["token_figures"] = [{**copy.deepcopy(figures), "name": name} for name in names]
    lags = [{"lag": lag, "tokens": 100 - 30 * lag, "mean": 0.01 * (lag + 1)} for lag in range(3)]
    document["token_figures"][0]["lags"] = lags
    layers = [{**layer, "verdict": "inconclusive"} for layer in document["layers"]]
    return {**document, "layers": layers, "exit_code": 3}


def curves() -> dict[str, Any]:
    """The example of two logs: a metric that separates, and one that does not."""
    document: dict[str, Any] = json.loads((CASE / "curves.json").read_text(encoding="utf-8"))
    apart = document["curves"]["metrics"][1]
    together = {"name": "reward", "outcome": "not separated", "detected_step": None, "onset_step": None}
    document["curves"]["metrics"] = [apart, {**copy.deepcopy(apart), **together}]
    return document


def diagnosis() -> dict[str, Any]:
    """Of the ablation alone."""
    source = {"path": "runs/v0-to-v1", "command": "ablate", "exit_code": 1}
    found = ablation()
    return {**empty("diagnose", 1), "layers": found["layers"], "effects": found["effects"], "sources": [source]}


def empty(command: str, exit_code: int) -> dict[str, Any]:
    """What every document has."""
    return {
        "schema": "rlaudit-report/1",
        "rlaudit": "0.1.0",
        "command": command,
        "exit_code": exit_code,
        "versions": {"from": None, "to": None},
        "findings": [],
        "settings": [],
        "arms": [],
        "effects": [],
        "layers": [],
        "not_seen": ["what nobody logged"],
    }


def made_hostile(value: Any, key: str = "") -> Any:
    """Every free text of a document with markup, scripts and control characters in it; names stay unique."""
    kept = {"schema", "command", "verdict", "layer", "role", "status", "metric", "outcome", "precedence", "lattice",
            "group", "boundary", "temperature", "yardstick", "clips", "consequence", "semantic", "inference path",
            "objective", "change", "layers"}  # fmt: skip
    if isinstance(value, dict):
        return {name: made_hostile(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [made_hostile(one, key) for one in value]
    return f"{value} {HOSTILE}" if isinstance(value, str) and key not in kept else value
