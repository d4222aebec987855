"""Sound tables of every size and shape show nothing; the whole of it is in `.ci/evidence`."""

import numpy as np
import pytest
from compare_tokens import compare
from honest_tables import ENTROPIES, SHIFT, SIZES, Shape, Size, honest_table

from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.meaning import Kind
from rlaudit.meaning.words import UNEXPLAINED

PLAIN = Semantics()
FAST = CompareSettings(replicates=300)
SMALL = [size for size in SIZES if size.prompts * size.samples * size.length < 2500]


@pytest.mark.parametrize("shape", Shape)
@pytest.mark.parametrize("size", SMALL, ids=lambda size: size.name)
def test_nothing_is_named_where_nothing_is_wrong(size, shape):
    first = (SMALL.index(size) + list(Shape).index(shape)) % 5
    for seed, entropy in enumerate(ENTROPIES[first::5]):
        found = compare([honest_table(seed, size, shape, entropy)], PLAIN, PLAIN, FAST)
        assert found.attribution.names == frozenset()
        semantic = found.layers[0]
        shifted = shape is Shape.SHIFT and found.meaning.kind in UNEXPLAINED
        assert semantic.verdict is not Verdict.MISMATCH or shifted


def test_the_entropies_of_honest_tables_are_those_asked_for():
    for entropy in ENTROPIES:
        table = honest_table(1, Size(16, 2, 64), Shape.EQUAL, entropy)
        assert np.mean(table.token_columns["trainer_entropy"]) == pytest.approx(entropy, rel=0.4)


def test_one_constant_is_named_as_such_and_no_filter():
    for asked in (PLAIN, Semantics(top_p=0.9)):
        found = compare([honest_table(2, Size(32, 1, 128), Shape.SHIFT, 1.0)], asked, PLAIN, FAST)
        assert (found.layers[0].verdict, found.meaning.kind) == (Verdict.MISMATCH, Kind.UNEXPLAINED_SHIFT)
        assert found.meaning.figures.shift == pytest.approx(-SHIFT)
        assert found.attribution.names == frozenset()


def test_a_constant_beside_noise_is_an_unexplained_bias():
    table = honest_table(2, Size(32, 1, 128), Shape.NOISE, 1.0)
    table.trainer_logprobs_T[:] -= SHIFT
    found = compare([table], PLAIN, PLAIN, FAST)
    assert (found.layers[0].verdict, found.meaning.kind) == (Verdict.MISMATCH, Kind.UNEXPLAINED_BIAS)
    assert found.attribution.names == frozenset()


def test_a_constant_over_few_prompts_is_said_and_shows_nothing():
    found = compare([honest_table(2, Size(8, 2, 40), Shape.SHIFT, 1.0)], PLAIN, PLAIN, FAST)
    assert (found.verdicts[0], found.meaning.kind) == (Verdict.INCONCLUSIVE, Kind.FEW_BIASED)
    assert found.meaning.figures.shift == pytest.approx(-SHIFT)
