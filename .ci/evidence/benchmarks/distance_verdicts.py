"""How often the inference path is judged wrongly, with and without a reference, and how well its interval covers.

    python -m evidence.benchmarks.distance_verdicts [--trials 400] [--seed 0]

With a reference: the candidate is as far from the trainer, or 1.1, 1.3, 1.5, 2 times as far; 32 and 128 prompts, two
completions each; tails as of a bfloat16 engine, and heavy ones. Below 1.3 a mismatch is wrong, above it a match is; at
1.3, the edge, each is wrong in half of the truth and must stay rare. Without one: noise of several sizes, judged by the
clip ranges; the truth is the share that a large batch clips. Ends with 1 where a wrong verdict is more frequent than
MOST_WRONG, or the interval holds the truth outside LOW to HIGH.
"""

import argparse
import sys
from collections import Counter

import numpy as np
from two_arms import BFLOAT16_LIKE, HEAVY, two_arms

from rlaudit.diagnosis.consequence import MEAN_SQUARES, NOTICEABLE_CLIPPING
from rlaudit.diagnosis.distance import Candidate, Reference, judge_distance
from rlaudit.layers import Verdict
from rlaudit.statistics.measurement.measure import all_metrics, measure, tally
from rlaudit.statistics.measurement.metric import Clip, ObjectiveSettings
from rlaudit.statistics.measurement.non_inferiority import TIMES

LOW, HIGH = 0.92, 0.97
# One side of a 95 % interval, and what heavy tails add to it (statistics/resample.py).
MOST_WRONG = 0.05
REPLICATES = 1000
TAILS = {"bfloat16-like": BFLOAT16_LIKE, "heavy": HEAVY}
RANGES = {
    "PPO 0.2": ObjectiveSettings(clips=(Clip.TOKENS,)),
    "GSPO 0.02": ObjectiveSettings(clips=(Clip.SEQUENCES,)),
    "GSPO 3e-4 4e-4": ObjectiveSettings(gspo_epsilon_low=3e-4, gspo_epsilon_high=4e-4, clips=(Clip.SEQUENCES,)),
}
NAMES = ("k3", *MEAN_SQUARES.values(), *(clip.value for clip in Clip))
VERDICTS = (Verdict.MATCH, Verdict.INCONCLUSIVE, Verdict.MISMATCH)


def judged(pairs, reference, settings, seed):
    metrics = [all_metrics()[name] for name in NAMES]
    measured = measure(pairs, settings, metrics, replicates=REPLICATES, seed=seed)
    k3 = [all_metrics()["k3"]]
    candidate = Candidate(measured, tally(pairs, k3, settings), int(pairs.sequence_lengths_S.min()))
    held = None
    if reference is not None:
        own = measure(reference, settings, k3, replicates=2)["k3"]
        held = Reference("reference", own, tally(reference, k3, settings), Verdict.MATCH, serves=True)
    return judge_distance(candidate, settings, None, held, replicates=REPLICATES, seed=seed)


def against_a_reference(trials, seed):
    """Print a row for each tail, size and ratio; return how often each is judged wrongly and holds the truth."""
    rows = []
    settings = RANGES["GSPO 3e-4 4e-4"]
    head = f"{'tails':14}{'prompts':>8}{'times':>6}"
    print(head + "".join(f"{one.value:>14}" for one in VERDICTS) + f"{'holds truth':>13}{'wrong':>8}")
    for name, tails in TAILS.items():
        for prompts in (32, 128):
            for times in (1.0, 1.1, TIMES, 1.5, 2.0):
                found, held = Counter(), 0
                for trial in range(seed, seed + trials):
                    distance = judged(*two_arms(trial, prompts, times, tails), settings, trial)
                    found[distance.verdict] += 1
                    against = distance.against
                    held += against.low <= times / TIMES <= against.high
                bad = [Verdict.MISMATCH] if times <= TIMES else []
                bad += [Verdict.MATCH] if times >= TIMES else []
                most = max(found[one] for one in bad) / trials
                rows.append((most, held / trials))
                shares = "".join(f"{found[one] / trials:>14.3f}" for one in VERDICTS)
                print(f"{name:14}{prompts:>8}{times:>6}{shares}{held / trials:>13.3f}{most:>8.3f}", flush=True)
    return rows


def without_one(trials, seed):
    """Print a row for each tail, clip range, k3 and number of prompts; return how often each is judged wrongly."""
    rows = []
    head = f"{'tails':14}{'range':16}{'prompts':>8}{'k3':>8}{'truly clipped':>15}"
    print(head + "".join(f"{one.value:>14}" for one in VERDICTS) + f"{'wrong':>8}")
    for name, tails in TAILS.items():
        for title, settings in RANGES.items():
            for k3 in (1e-8, 1e-5, 1e-4, 1e-3, 1e-2):
                many, _ = two_arms(10**6 + seed, 20_000, 1.0, tails, k3=k3)
                (clip,) = settings.clips
                truth = all_metrics()[clip.value].value(many, settings)
                bad = Verdict.MISMATCH if truth <= NOTICEABLE_CLIPPING else Verdict.MATCH
                for prompts in (32, 128):
                    found = Counter(
                        judged(two_arms(trial, prompts, 1.0, tails, k3=k3)[0], None, settings, trial).verdict
                        for trial in range(seed, seed + trials)
                    )
                    rows.append(found[bad] / trials)
                    shares = "".join(f"{found[one] / trials:>14.3f}" for one in VERDICTS)
                    place = f"{name:14}{title:16}{prompts:>8}{k3:>8.0e}{truth:>15.5f}"
                    print(f"{place}{shares}{found[bad] / trials:>8.3f}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    print(f"{asked.trials} simulations a row")
    held = against_a_reference(asked.trials, asked.seed)
    print()
    alone = without_one(max(asked.trials // 4, 1), asked.seed)
    wrong = sum(share > MOST_WRONG for share in (*(most for most, _ in held), *alone))
    missed = sum(not LOW <= share <= HIGH for _, share in held)
    print(f"\n{wrong} rows with a wrong verdict in more than {MOST_WRONG:.0%}; {missed} outside {LOW} to {HIGH}")
    return 1 if wrong or missed else 0


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    sys.exit(main())
