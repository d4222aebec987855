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
    """A comparison of two tables with version lags."""
    measurements = ablation()["arms"][1]["measurements"]
    layers = [{**layer, "verdict": "inconclusive"} for layer in ablation()["layers"]]
    one = {
        "name": "steps 1 to 8",
        "path": "rollouts.parquet",
        "format": "token-table",
        "files": 1,
        "trainer_path": None,
        "tokens": 2000,
        "sequences": 64,
        "compared_tokens": 2000,
        "unscored_sequences": 0,
        "uncounted_tokens": 0,
        "impossible_tokens": 0,
        "misaligned": {},
        "shortest_sequence": 4,
        "sampling": meaning(0.7),
        "trainer": meaning(1.0),
        "measurements": measurements,
        "alignment": {"misaligned": {}, "sequences": [], "messages": [], "not_tested": []},
        "semantics": None,
        "attribution": None,
        "objective": None,
        "evidence_tokens": 2000,
        "layers": {layer["layer"]: layer["verdict"] for layer in layers},
        "faults": {"count": 0, "sequences_left_out": 0, "shown": []},
        "notes": [],
    }
    drawn = [token_figures(name, None) for name in ("steps 1 to 8", "steps 9 to 16")]
    drawn[0]["lags"] = [{"lag": lag, "tokens": 100 - 30 * lag, "mean": 0.01 * (lag + 1)} for lag in range(3)]
    return {
        **empty("compare", 3),
        "layers": layers,
        "comparisons": [one, {**copy.deepcopy(one), "name": "steps 9 to 16"}],
        "token_figures": drawn,
    }


def curves() -> dict[str, Any]:
    """Two metrics, one of which separates."""
    points = [
        {"step": step, "reference": 1.0, "candidate": 1.0 + (step > 30), "low": 0.5, "high": 1.5}
        for step in range(0, 60, 2)
    ]
    metric = {
        "name": "actor/ppo_kl",
        "candidate_name": "actor/ppo_kl",
        "canonical": None,
        "group": None,
        "framework": None,
        "definition": None,
        "clipping": None,
        "trainer_logprobs": None,
        "outcome": "separated",
        "because": "the statistic passes 6 at step 34",
        "detected_step": 34,
        "onset_step": 32,
        "reference_level": 1.0,
        "candidate_level": 2.0,
        "steps": {"first": 0, "last": 58, "count": 30},
        "averaged_steps": 1,
        "statistic": 6.0,
        "threshold": 5.0,
        "noise_ratio": 0.1,
        "resolution": 0.2,
        "logarithm": False,
        "notes": [],
        "points": points,
    }
    run = {
        "name": "ref.csv",
        "sink": "CSV",
        "files": ["ref.csv"],
        "step": "step",
        "first_step": 0,
        "last_step": 58,
        "metrics": 2,
        "problems": [],
    }
    return {
        **empty("curves", 1),
        "curves": {
            "reference": [run],
            "candidate": {**run, "name": "new.csv"},
            "candidates": [{**run, "name": "new.csv"}],
            "alpha": 0.05,
            "band": "step noise of the reference, detrended",
            "assumptions": ["the same checkpoint"],
            "metrics": [
                metric,
                {**metric, "name": "reward", "outcome": "not separated", "detected_step": None, "onset_step": None},
            ],
            "order": {"precedence": "logprobs only", "because": "one separated", "suggests": "the backend", "next": ""},
        },
    }


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


def meaning(temperature: float) -> dict[str, float]:
    """Plain sampling at a temperature."""
    return {
        "temperature": temperature,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
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
