"""How often an early verdict of `rlaudit ablate` is turned by a later arm: worlds with a known answer, on stand-ins.

Each world is ablated with each seed to its end. What the three layers say at each look before that is held against what
they say at the end. A verdict that was open at first and is decided later is not turned.

    python -m evidence.benchmarks.early_verdicts --seeds 5
"""

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from laboratories import V0, V1, V1_WITH_FLOAT32_HEAD, Laboratory, build_engine_cache, laboratory_in

from rlaudit.ablation import as_it_forms
from rlaudit.layers import Layer, Verdict

DRIFT = {"FAKE_VLLM_DRIFT": "0.15"}
PROCESSED = {"levels": {"logprobs-mode": "processed"}}
# What a world adds to the block below, and the layer that mismatches in it.
WORLDS: dict[str, tuple[dict[str, Any], Layer | None]] = {
    "null": ({"candidate": {"version": V1, **PROCESSED}}, None),
    "raw logprobs": ({}, Layer.SEMANTIC),
    "the trainer forgets the temperature": (
        {"candidate": {"version": V1, **PROCESSED}, "trainer": {"temperature": "ignore"}},
        Layer.SEMANTIC,
    ),
    "compiled kernels": (
        {
            # It would drift as well, and what is as far away today is no finding.
            "reference": None,
            "candidate": {"version": V1, **PROCESSED},
            "factors": {"enforce-eager": "on", "prefix-caching": "off", "dummy": "on"},
            "environment_variables": DRIFT,
        },
        Layer.INFERENCE_PATH,
    ),
    "raw logprobs and compiled kernels": (
        {
            "factors": {"logprobs-mode": "processed", "enforce-eager": "on", "dummy": "on"},
            "parity": ["logprobs-mode", "enforce-eager"],
            "environment_variables": DRIFT,
        },
        Layer.SEMANTIC,
    ),
}
WORLDS |= {
    "raw logprobs at a temperature of one": ({"sampling": {"temperature": 1.0}}, None),
    "raw logprobs above one": ({"sampling": {"temperature": 1.3}}, Layer.SEMANTIC),
    "raw logprobs on both sides": (
        {"reference": {"version": V1}, "candidate": {"version": V1_WITH_FLOAT32_HEAD}},
        Layer.SEMANTIC,
    ),
    "compiled kernels on both sides": (
        {
            "reference": {"version": V1, **PROCESSED},
            "candidate": {"version": V1_WITH_FLOAT32_HEAD, **PROCESSED},
            "environment_variables": DRIFT,
        },
        None,
    ),
    "compiled kernels, three times as far": (
        {
            "reference": None,
            "candidate": {"version": V1, **PROCESSED},
            "factors": {"enforce-eager": "on", "prefix-caching": "off", "dummy": "on"},
            "environment_variables": {"FAKE_VLLM_DRIFT": "0.45"},
        },
        Layer.INFERENCE_PATH,
    ),
    "the trainer forgets the temperature of raw logprobs": (
        # The two faults cancel: report and trainer agree, and the tokens were drawn from another distribution.
        {"trainer": {"temperature": "ignore"}},
        Layer.SEMANTIC,
    ),
}
BLOCK = {
    "name": "migration",
    "reference": {"version": V0},
    "candidate": {"version": V1},
    "factors": {"logprobs-mode": "processed", "prefix-caching": "off", "dummy": "on"},
    "repeats": 1,
}
DECIDED = {Verdict.MATCH, Verdict.MISMATCH}


def verdicts_of(laboratory: Laboratory, world: str, seed: int) -> tuple[list[list[Verdict]], list[Verdict]]:
    """Return the three layers' verdicts at each look and at the end."""
    looks: list[list[Verdict]] = []
    judge = as_it_forms.so_far

    def heard(*arguments: Any) -> as_it_forms.SoFar:
        known = judge(*arguments)
        looks.append([one.verdict for one in known.layers])
        return known

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(as_it_forms, "so_far", heard)
        block = {key: value for key, value in {**BLOCK, **WORLDS[world][0]}.items() if value is not None}
        recipe = laboratory.recipe(block, name=f"{world}-{seed}".replace(" ", "-"), seed=seed, max_tokens=40)
        run = laboratory.command("ablate", str(recipe), "--cpu", "--run-dir", str(laboratory.folder / recipe.stem))
        report = laboratory.folder / recipe.stem / "report.json"
        assert report.exists(), run.stderr
    from rlaudit.report.read_report import read_report

    return looks, [one.verdict for one in read_report(report)["layers"]]


def main() -> None:
    """Print how many first verdicts were turned, and how many last ones are wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        build_engine_cache(cache)
        for world, (_, mismatch) in WORLDS.items():
            counted: Counter[str] = Counter()
            for seed in range(seeds):
                place = Path(folder) / f"{world}-{seed}".replace(" ", "-")
                place.mkdir()
                with laboratory_in(place, cache) as laboratory:
                    looks, last = verdicts_of(laboratory, world, seed)
                pairs = [pair for look in looks for pair in zip(look, last, strict=True)]
                counted["turned"] += sum(a in DECIDED and b in DECIDED and a is not b for a, b in pairs)
                counted["taken back"] += sum(a in DECIDED and b not in DECIDED for a, b in pairs)
                counted["decided at first"] += sum(verdict in DECIDED for verdict in looks[0])
                counted["decided at last"] += sum(verdict in DECIDED for verdict in last)
                found = next((layer for layer, b in zip(Layer, last, strict=True) if b is Verdict.MISMATCH), None)
                counted["wrong"] += found is not mismatch
            print(f"{world}: {seeds} seeds, {dict(counted)}", flush=True)


if __name__ == "__main__":
    main()
