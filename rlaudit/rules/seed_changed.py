"""Sampling is seeded another way after the migration, with no seed in the config.

What changed
    Without `seed`, V0 and V1 of 0.8.5 stay unseeded. V1 of 0.9.0 and later seeds with 0; 0.12.0 declares 0. 0.32.0
    mixes the data-parallel rank into the seed, so ranks no longer sample alike.

Why it matters
    Logprobs keep their meaning, but other tokens are drawn. Two starts of the same engine now draw the same
    tokens, which can look like less variance than there is.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        at_from: {environment: {VLLM_USE_V1: "0"}}

    Use instead:

        engine: {seed: 1234}

Safe to ignore when
    you compare distributions and not single runs.

How to confirm
    `rlaudit ablate CONFIG --from A --to B --factor engine-version`: its repeats with other seeds show the noise.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.moved_default import moved_default
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.vllm.milestones import SEED_OF_EVERY_RANK

SETTING = "seed"


def check(audit: Audit) -> Iterator[Finding]:
    """Report sampling that is unseeded before and seeded after, or a rank mixed into the seed."""
    moved = moved_default(audit, SETTING)
    ranks = audit.after.value("data_parallel_size")
    if moved is not None:
        sent = audit.config.sampling.get(SETTING)
        if sent is not None and sent.value is not None:
            effect = "Every request sends its seed"
        elif audit.config.facts.seeds_replicas is True:
            effect = "The framework seeds its engines all the same"
        else:
            effect = "Engines drew different samples at each start; now they draw the same samples at each start"
        message = (
            f"No seed is set: {engine_of(audit.before)} {_how(moved.before.value)}, "
            f"{engine_of(audit.after)} {_how(moved.after.value)}. {effect}."
        )
    elif audit.crosses(SEED_OF_EVERY_RANK) and isinstance(ranks, int) and ranks > 1:
        message = (
            f"{ranks} data-parallel ranks sampled from one seed on vLLM {audit.before.version}; vLLM "
            f"{audit.after.version} gives each rank its own seed. Expect other, more diverse samples."
        )
    else:
        return
    yield RULE.finding(audit, Severity.NOTE, SETTING, message, confirm=Trial())


def _how(seed: object) -> str:
    return "uses no seed" if seed is None else f"uses seed {seed}"


RULE = Rule("seed-changed", Layer.INFERENCE_PATH, check, defaults=("seed",))
