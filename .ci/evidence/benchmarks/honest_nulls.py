"""How often sound token tables get a cause, by size, by shape and by entropy.

    python -m evidence.benchmarks.honest_nulls [--tables 2000] [--seed 0] [--jobs 1]

Wrong is a cause that is named, and a semantic mismatch. Tables whose trainer is shifted by a constant do have another
mean ratio: of them that an unexplained bias or shift is there is right, and everything else is wrong. That the two
sides are too far apart for a clip range may be right as well, so a mismatch of the inference path without a cause is
not counted.
Ends with 1 where more than 1 % of all tables, or of a size or a shape, get one.
"""

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context

from compare_tokens import compare
from honest_tables import ENTROPIES, SIZES, Shape, honest_table

from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.words import UNEXPLAINED

MOST_WRONG = 0.01
STRIDE = 379  # a prime that does not divide the number of combinations, so that few tables are of all kinds
RAW = Semantics()


def with_a_cause(number, seed):
    """(size, shape, entropy, what was named wrongly) of one table; every size, shape and entropy in turn."""
    every = list(product(Shape, SIZES, ENTROPIES))
    shape, size, entropy = every[number * STRIDE % len(every)]
    table = honest_table(seed * 1_000_003 + number, size, shape, entropy, columns=number % 7 != 0)
    found = compare([table], RAW, RAW)
    named = set() if found.attribution is None else set(found.attribution.names)
    semantic = found.layers[0]
    expected = shape is Shape.SHIFT and found.meaning.kind in UNEXPLAINED
    if semantic.verdict is Verdict.MISMATCH and not named and not expected:
        named.add(semantic.cause)
    return size.name, shape.value, entropy, tuple(sorted(named)), semantic.verdict.value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    started = time.monotonic()
    numbers = range(asked.tables)
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(with_a_cause, numbers, [asked.seed] * asked.tables, chunksize=16))
    worst = 0.0
    for title, of in (("all", lambda one: "all"), ("size", lambda one: one[0]), ("shape", lambda one: one[1]),
                      ("entropy", lambda one: f"{one[2]:g}")):  # fmt: skip
        tables, wrong = Counter(map(of, found)), Counter(of(one) for one in found if one[3])
        for name, count in tables.items():
            print(f"{title:8} {name:16} {wrong[name]:4} of {count:4} with a cause ({wrong[name] / count:.1%})")
            worst = max(worst, wrong[name] / count if title != "entropy" else 0.0)
    for causes, count in Counter(cause for one in found for cause in one[3]).most_common():
        print(f"named    {causes}: {count}")
    print(f"semantic {dict(Counter(one[4] for one in found))}")
    print(f"{time.monotonic() - started:.0f} s")
    return int(worst > MOST_WRONG)


if __name__ == "__main__":
    sys.exit(main())
