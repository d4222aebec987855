"""Each request alone in the engine, or all requests of a round together: does a logprob depend on its neighbours?"""

from dataclasses import replace

from rlaudit.laboratory.factor import ArmTrace, Factor, Observation, never
from rlaudit.laboratory.treatment import Treatment
from rlaudit.layers import Layer


def set_level(treatment: Treatment, level: str) -> Treatment:
    """`alone` submits the next request when the last one has ended; `batch` submits a round at once."""
    return replace(treatment, concurrency="alone" if level == "alone" else "batch")


def observe(trace: ArmTrace) -> Observation:
    """Return how requests were submitted, which rlaudit itself decides."""
    level = trace.treatment.concurrency
    return Observation(level, "one request at a time" if level == "alone" else "a round of requests at once")


FACTOR = Factor(
    name="batch-size",
    layer=Layer.INFERENCE_PATH,
    levels=("batch", "alone"),
    set_level=set_level,
    observe=observe,
    setting="max_num_seqs",
    # Requests alone would take as long as all other arms together.
    move=never,
)
