"""The smallest deviation that samples of one prompt show, beside what nobody can see better on the same tokens.

    python tests/benchmarks/sibling_power.py [--trials 20] [--seed 1]

Trees of known distributions (`known_contexts.py`): the sampler deviates, the report does not, and a table has token ids
and one logprob a token, no trainer. For each size and deviation the smallest dose, of a grid whose steps are a quarter
apart, that is seen in at least four of five trials

    verdict       by `from_siblings.py`: p below 1e-4 with every part of the prompts left out, and more than 3 % of 1/T
    p             by the sharpness alone at p below 1e-4
    likelihood    by the most powerful test of that level there is (Neyman & Pearson): the likelihood ratio of the very
                  same draws, for someone who knows both full distributions of every context, and the dose

None: not even the largest. Penalties fall on a third of the tokens of each context.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from known_contexts import Contexts, contexts_of, grow, logits_of, penalised, without_trainer  # noqa: E402
from worlds.sibling_tree import Transform, at  # noqa: E402

from rlaudit.arrays import Floats, Integers  # noqa: E402
from rlaudit.meaning.from_siblings import siblings_of  # noqa: E402
from rlaudit.statistics.estimate import ALPHA  # noqa: E402
from rlaudit.tokens.token_batch import TokenBatch  # noqa: E402

SIZES = [(64, 8), (512, 8), (512, 16)]
LENGTH = 40
CONTEXTS, VOCABULARY, SHARPNESS = 512, 1024, (1.0, 12.0)
# As far as a normal variable falls below its mean once in 10,000 times, to one side.
NORMAL_REACH = 3.719
SEEN_IN = 0.8
STEP, STEPS = 1.25, 30
# The largest dose of each, the parameter that a dose sets, and the sampler with that parameter.
DEVIATIONS: dict[str, tuple[float, Callable[[float], float], Callable[[float], Transform]]] = {
    "temperature below 1": (0.5, lambda dose: 1.0 - dose, lambda value: at(temperature=value)),
    "temperature above 1": (1.0, lambda dose: 1.0 + dose, lambda value: at(temperature=value)),
    "top-p": (0.5, lambda dose: 1.0 - dose, lambda value: at(top_p=value)),
    "top-k": (0.5, lambda dose: round(1.0 / dose), lambda value: at(top_k=int(value))),
    "min-p": (0.5, lambda dose: dose, lambda value: at(min_p=value)),
    "repetition penalty": (1.0, lambda dose: 1.0 + dose, lambda value: penalised(repetition=value)),
    "presence penalty": (4.0, lambda dose: dose, lambda value: penalised(presence=value)),
}


def main() -> None:
    """Print a line for each size and deviation."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--trials", type=int, default=20)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--only", choices=DEVIATIONS)
    options = asked.parse_args()
    started = time.process_time()
    logits_DV = logits_of(np.random.default_rng(options.seed), CONTEXTS, VOCABULARY, SHARPNESS)
    known = contexts_of(logits_DV, at(), at())
    entropy = -float((known.p_DV * known.reported_DV).sum(axis=1).mean())
    print(json.dumps({"contexts": CONTEXTS, "vocabulary": VOCABULARY, "mean_entropy": round(entropy, 3)}))
    for name, (largest, parameter, sampler) in DEVIATIONS.items():
        if options.only not in (None, name):
            continue
        values = [parameter(largest / STEP**step) for step in range(STEPS + 1)]
        for size in SIZES:

            @cache
            def shares(step: int, values=values, sampler=sampler, size=size) -> Floats:  # type: ignore[no-untyped-def]
                dosed = contexts_of(logits_DV, sampler(values[step]), at())
                return _shares(dosed, size, options.trials, options.seed)

            row = {"deviation": name, "size": f"{size[0]} x {size[1]}"}
            for column, criterion in enumerate(("verdict", "p", "likelihood")):
                step = _last(lambda step, column=column: shares(step)[column] >= SEEN_IN)  # type: ignore[misc]
                row[criterion] = None if step is None else round(values[step], 4)
            print(json.dumps(row), flush=True)
    print(json.dumps({"trials": options.trials, "seconds": round(time.process_time() - started)}))


def _last(seen: Callable[[int], bool]) -> int | None:
    """By bisection: the last step of 0..STEPS, of falling doses, that is seen; None where the first is not."""
    if not seen(0):
        return None
    low, high = 0, STEPS + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if seen(middle) else (low, middle)
    return low


def _shares(known: Contexts, size: tuple[int, int], trials: int, seed: int) -> Floats:
    """(3,) of the trials, in how many each criterion sees it. A trial has the same seed at every dose."""
    seen = np.zeros(3)
    for trial in range(trials):
        batch, context_T = grow(np.random.default_rng((seed, trial)), known, *size, LENGTH)
        found = siblings_of((without_trainer(batch), batch.prompt_S))
        assert found is not None and found.report is not None
        by_p = found.report.step.ln_p < np.log(ALPHA)
        seen += (found.convict, by_p, _likelier(known, batch, context_T))
    return seen / trials


def _likelier(known: Contexts, batch: TokenBatch, context_T: Integers) -> bool:
    """Whether the likelihood ratio of the draws convicts, at ALPHA at the most.

    What an honest sampler gets there once in 1 / ALPHA times is no more than 1 / ALPHA, since its mean is 1; and what a
    normal sum reaches, where every token is left possible.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio_DV = np.log(known.p_DV) - known.reported_DV
        honest_DV = np.exp(known.reported_DV)
        mean_D = (honest_DV * ratio_DV).sum(axis=1)
        variance_D = (honest_DV * np.square(ratio_DV - mean_D[:, None])).sum(axis=1)
    found = float(ratio_DV[context_T, batch.token_id_T].sum())
    normal = float(mean_D[context_T].sum() + NORMAL_REACH * np.sqrt(variance_D[context_T].sum()))
    return found > min(-np.log(ALPHA), normal if np.isfinite(normal) else np.inf)


if __name__ == "__main__":
    main()
