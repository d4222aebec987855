"""Several rollout engines draw from the same random stream.

What changed
    V0, and V1 of 0.8.5, left the random state alone without a seed. From 0.9.0 V1 seeds with 0 by itself
    (vllm#17929), so that every replica that is started alike samples alike. Ranks of one data-parallel engine
    shared their seed until 0.31.0; 0.32.0 mixes the rank in (vllm/utils/torch_utils.py:542).

Why it matters
    Replicas that get the same prompt return the same completion. A group of n rollouts holds fewer than n different
    ones, the advantage baseline narrows, and exploration shrinks. No metric of mismatch moves.

Example
    Reported:

        to: 0.18.1
        trainer: {replicas: 4, seeds_replicas: false}

    Use instead:

        trainer: {seeds_replicas: true}

Safe to ignore when
    a prompt's samples all go to one replica, or requests carry their seeds.

How to confirm
    Send one prompt at T=1 to two replicas that just started and compare the tokens.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.severity import Severity
from rlaudit.vllm.milestones import SEED_OF_EVERY_RANK

SETTING = "seed"


def check(audit: Audit) -> Iterator[Finding]:
    """Report several engines with the same seed."""
    seed = audit.after.value(SETTING)
    request_seed = audit.config.sampling.get("seed")
    if not isinstance(seed, int) or (request_seed is not None and request_seed.value is not None):
        return
    replicas, ranks = audit.config.facts.replicas, audit.after.value("data_parallel_size")
    if isinstance(replicas, int) and replicas > 1 and audit.config.facts.seeds_replicas is False:
        samplers = f"{replicas} replicas"
    elif isinstance(ranks, int) and ranks > 1 and audit.after.version < SEED_OF_EVERY_RANK:
        samplers = f"{ranks} data-parallel ranks"
    else:
        return
    message = (
        f"{samplers} start with the same seed {seed} in vLLM {audit.after.version}, so equal batches of equal prompts "
        "give equal samples. Give each engine its own seed, or send a seed with every request."
    )
    yield RULE.finding(audit, Severity.WARNING, SETTING, message, by=("replicas",))


RULE = Rule("seed-shared-by-replicas", Layer.INFERENCE_PATH, check)
