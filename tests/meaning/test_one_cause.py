"""The same tokens get the same cause from every command: with scores (ablate, compare RUN, --score), from logs alone.

Each meaning of a logprob is planted once in the noise of float32 and once in that of bfloat16. Logs alone know less:
they may leave a mismatch without a name, and name nothing else.
"""

from dataclasses import replace

import pytest
from compare_tokens import compare
from simulated_tokens import RAW, World, simulate_log

from rlaudit.causes.attribution.semantic_signatures import semantic_names
from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.from_scores import identify
from rlaudit.meaning.sample_fit import fit_sample
from rlaudit.meaning.token_evidence import token_evidence

COOL = Semantics(0.8)
LIKE_BFLOAT16, LIKE_FLOAT32 = 0.2, 1e-3
FILTERS, PENALTY, RAW_LOGPROBS = ("filters-not-replayed",), ("penalty",), ("raw-logprobs",)
BIASED = ((3, 2.0), (5, 1.0), (8, -2.0))


def processed(trainer=COOL, **parameters):
    """What is sampled is what is reported, and the trainer leaves all but the temperature out."""
    return World(sampled=replace(COOL, **parameters), trainer=trainer)


# (world, causes with scores, whether logs alone name them as well)
MEANINGS = {
    "temperature": (World(sampled=COOL, trainer=COOL), ()),
    "filters replayed": (World(sampled=Semantics(0.8, top_p=0.9), trainer=Semantics(0.8, top_p=0.9)), ()),
    "top-p": (processed(top_p=0.95), FILTERS),
    "top-k": (processed(top_k=20), FILTERS),
    "min-p": (processed(min_p=0.05), FILTERS),
    "top-p that is not requested": (replace(processed(top_p=0.7), requested=COOL), FILTERS),
    "repetition penalty": (processed(repetition_penalty=1.2), PENALTY),
    "presence penalty": (processed(presence_penalty=1.0), PENALTY),
    "frequency penalty": (processed(frequency_penalty=1.0), PENALTY),
    "bias": (processed(logit_bias=BIASED), PENALTY),
    "top-p and penalty": (processed(top_p=0.9, repetition_penalty=1.2), (*FILTERS, *PENALTY)),
    "raw": (World(sampled=Semantics(0.6), reported=RAW, trainer=Semantics(0.6)), RAW_LOGPROBS),
    "trainer without temperature": (World(sampled=Semantics(0.6), trainer=RAW), ("trainer-temperature",)),
    "trainer without both": (
        World(sampled=Semantics(0.6, top_p=0.9), trainer=RAW),
        ("filters-not-replayed", "trainer-temperature"),
    ),
    "raw through top-p": (World(sampled=Semantics(top_p=0.8), reported=RAW, trainer=RAW), ("hidden-truncation",)),
}


@pytest.mark.parametrize("noise", [LIKE_FLOAT32, LIKE_BFLOAT16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("name", MEANINGS)
def test_every_command_names_the_same_cause(name, noise):
    world, causes = MEANINGS[name]
    world = replace(world, noise=noise, sequences=64, length=24, vocabulary=100)
    requested = world.requested or world.sampled
    batch, scored = simulate_log(world)
    meaning = identify(scored, requested, world.trainer)
    assert semantic_names(meaning, meaning.figures).in_order == causes
    assert meaning.verdict is (Verdict.MISMATCH if causes else Verdict.MATCH)

    settings = CompareSettings(replicates=200, trainer_excludes=world.trainer.filtered)
    by_scores = compare([batch], requested, world.trainer, settings, scored=(batch, scored, 0.0)).layers[0]
    assert (by_scores.verdict, tuple(by_scores.causes)) == (meaning.verdict, causes)
    by_logs = compare([batch], requested, world.trainer, settings).layers[0]
    print("LOGS", name, noise, by_logs.verdict, by_logs.cause)
    assert set(by_logs.causes) <= set(causes) or by_logs.causes == ("hidden sampling parameters",)


def test_a_temperature_that_both_sides_left_out_is_a_fault_of_both():
    world = World(sampled=Semantics(0.6), reported=RAW, trainer=RAW, sequences=64, length=24, vocabulary=100)
    scored = simulate_log(world)[1]
    assert fit_sample(scored, world.trainer).differs
    meaning = identify(scored, world.sampled, world.trainer)
    assert semantic_names(meaning, meaning.figures).in_order == (*RAW_LOGPROBS, "trainer-temperature")


def test_scored_tokens_are_compared_under_what_the_engine_reports():
    world, _ = MEANINGS["raw"]
    batch, scored = simulate_log(replace(world, noise=LIKE_FLOAT32, sequences=64, length=24, vocabulary=100))
    meaning = identify(scored, world.sampled, world.trainer)
    assert token_evidence(batch, trainer=world.trainer).k2 > 1e-2
    assert token_evidence(batch, trainer=world.trainer, scored=scored, meaning=meaning).k2 < 1e-4
