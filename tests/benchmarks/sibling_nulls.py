"""Sibling agreement on trees of known distributions: honest ones that are convicted, deviations that are acquitted.

    python tests/benchmarks/sibling_nulls.py [--tables 5000] [--seed 1]

Tables of 8 x 2 to 1,024 x 16 samples, small ones more often; entropies from collapsed to uniform; half of them with
ragged ends; noise of 0 to 0.05 on a logit; sampled at T = 0.7, 1 or 1.3 under processed logprobs. There is no trainer:
what is said of one is the same statistic. Where the honest table is acquitted, and of one in ten of the others, there
is a twin for each deviation: the sampler has it, the report does not.

Printed, for all, by size, by entropy and by ends: of honest tables the share that each sum calls wrong at the levels
asked for, the share of 95 % intervals that hold 0, how many the verdict convicts (with a 95 % bound on the share) and
acquits. Of each deviation how many are convicted and acquitted, where the honest twin is acquitted and elsewhere; and
the mass that its filter cuts, in all and in those acquitted: nothing tells a top-k of more than the samples, but what
it cuts. Ends with 1 where the verdict convicts more honest tables than one in a thousand, or acquits more than one in
twenty of the twins with a deviation (of a top-k: one that cuts more than `from_siblings.py` promises to see).
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from known_contexts import contexts_of, grow, logits_of, without_trainer  # noqa: E402
from worlds.sibling_tree import at  # noqa: E402

from rlaudit.attribution.alignment_signature import proportion_interval  # noqa: E402
from rlaudit.meaning.from_siblings import SAME_MASS, Siblings, siblings_of  # noqa: E402

SIZES = [(8, 2), (8, 8), (16, 4), (32, 2), (32, 16), (64, 4), (64, 8), (128, 16), (256, 8), (512, 8), (1024, 4)]
SIZES += [(512, 16), (1024, 16)]
# Scales of exponential logits: 0.01 is uniform, 30 has collapsed.
SHARPNESS = [(0.01, 0.5), (0.5, 2.0), (1.0, 6.0), (3.0, 12.0), (8.0, 30.0), (0.5, 30.0)]
NOISE = [0.0, 0.0, 0.01, 0.05]
TEMPERATURES = [0.7, 1.0, 1.3]
VOCABULARY = 512
# Contexts that a table draws its own from; every table has new ones.
CONTEXTS = 128
HONEST = "honest"
DEVIATIONS = {
    "T 5 % lower": {"temperature": 0.95},
    "T 5 % higher": {"temperature": 1.05},
    "top-p 0.98": {"top_p": 0.98},
    "top-k 50": {"top_k": 50},
    "min-p 0.02": {"min_p": 0.02},
}
LEVELS = (0.05, 0.01, 0.001)
SUMS = ("excess", "step", "odds")
TWINS_OF_OTHERS = 0.1
ACQUITTED, OTHERS = "honest twin acquitted", "honest twin not acquitted"


@dataclass(frozen=True)
class Told:
    """What was said of one table. cut: mass that the sampler's filter takes, on average over contexts."""

    groups: tuple[str, ...]
    siblings: Siblings
    cut: float = 0.0

    @property
    def acquitted(self) -> bool:
        """Of the report, in the order of `from_logs.py`, which asks the same of the trainer besides."""
        open_ = self.siblings.convict or self.siblings.leans(self.siblings.report)
        return self.siblings.same(self.siblings.report) and not open_


def main() -> int:
    """Print; 1 where the promise is not kept."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--tables", type=int, default=5000)
    asked.add_argument("--seed", type=int, default=1)
    options = asked.parse_args()
    started = time.process_time()
    told: dict[str, list[Told]] = defaultdict(list)
    for name, one in _tables(np.random.default_rng(options.seed), options.tables):
        told[name].append(one)
    for group, honest in _by_group(told[HONEST]):
        print(json.dumps({"honest": group, **_nulls(honest)}))
    kept = True
    for name, how in DEVIATIONS.items():
        for group, deviating in _by_group(told[name]):
            print(json.dumps({"deviation": name, "in": group, **_acquittals(deviating)}))
        # A top-k is known by what it cuts alone.
        at_stake = [one for one in told[name] if "top_k" not in how or one.cut > SAME_MASS]
        twins = [one.acquitted for one in at_stake if ACQUITTED in one.groups]
        kept &= sum(twins) <= 0.05 * len(twins)
    silent = options.tables - len(told[HONEST])
    seconds = round(time.process_time() - started)
    print(json.dumps({"tables": options.tables, "without_siblings": silent, "seconds": seconds}))
    convicted = sum(one.siblings.convict for one in told[HONEST])
    return int(convicted > options.tables / 1000 or not kept)


def _tables(rng: np.random.Generator, tables: int) -> Iterator[tuple[str, Told]]:
    """Honest tables and deviating ones, by name; none where no two samples share a context."""
    # A table of a thousand samples is a tenth as frequent as one of ten.
    weight_Z = np.array([prompts * samples for prompts, samples in SIZES]) ** -0.5
    for _ in range(tables):
        size = SIZES[rng.choice(len(SIZES), p=weight_Z / weight_Z.sum())]
        sharpness = SHARPNESS[rng.integers(len(SHARPNESS))]
        temperature, noise, ragged = rng.choice(TEMPERATURES), rng.choice(NOISE), rng.random() < 0.5
        groups = (
            f"{size[0]} x {size[1]}",
            f"logits {sharpness[0]} to {sharpness[1]}",
            "ragged ends" if ragged else "even ends",
        )
        logits_DV = logits_of(rng, CONTEXTS, VOCABULARY, sharpness) / temperature

        def told(parameters, groups=groups, logits_DV=logits_DV, size=size, noise=noise, ragged=ragged):  # type: ignore[no-untyped-def]
            known = contexts_of(logits_DV, at(**parameters), at())
            batch = without_trainer(grow(rng, known, *size, noise=noise, ragged=ragged)[0])
            found = siblings_of((batch, batch.prompt_S))
            cut = float((np.exp(known.reported_DV) * (known.p_DV == 0)).sum(axis=1).mean())
            return found and Told(groups, found, cut)

        honest = told({})
        if honest is None:
            continue
        yield HONEST, honest
        if not honest.acquitted and rng.random() > TWINS_OF_OTHERS:
            continue
        twin = ACQUITTED if honest.acquitted else OTHERS
        for name, parameters in DEVIATIONS.items():
            one = told(parameters)
            if one is not None:
                yield name, replace(one, groups=(*groups, twin))


def _by_group(told: list[Told]) -> Iterator[tuple[str, list[Told]]]:
    """All of them, then those of each size, entropy, kind of ends and of twin."""
    yield "all", told
    names = sorted({(place, group) for one in told for place, group in enumerate(one.groups)})
    for place, group in names:
        yield group, [one for one in told if one.groups[place] == group]


def _nulls(honest: list[Told]) -> dict[str, object]:
    convicted = sum(one.siblings.convict for one in honest)
    row: dict[str, object] = {"tables": len(honest)}
    for name in SUMS:
        found = [getattr(one.siblings.report, name) for one in honest]
        ln_p = np.array([one.ln_p for one in found])
        row[name] = {
            "wrong_at": {str(level): round(float((ln_p < np.log(level)).mean()), 4) for level in LEVELS},
            "holds_0": round(float(np.mean([one.low <= 0.0 <= one.high for one in found])), 3),
            "z_sd": round(float(np.std([one.score for one in found])), 2),
        }
    return {
        **row,
        "convicted": convicted,
        "convicted_at_most": round(proportion_interval(convicted, len(honest))[1], 5),
        "called_broken": sum(bool(one.siblings.broken) for one in honest),
        "acquitted": round(float(np.mean([one.acquitted for one in honest])), 3),
    }


def _acquittals(deviating: list[Told]) -> dict[str, object]:
    acquitted = sum(one.acquitted for one in deviating)
    return {
        "tables": len(deviating),
        "convicted": round(float(np.mean([one.siblings.convict for one in deviating])), 4),
        "acquitted": acquitted,
        "share": round(acquitted / len(deviating), 4),
        "cut": round(float(np.mean([one.cut for one in deviating])), 4),
        "cut_where_acquitted": round(float(np.mean([one.cut for one in deviating if one.acquitted] or [0.0])), 4),
    }


if __name__ == "__main__":
    sys.exit(main())
