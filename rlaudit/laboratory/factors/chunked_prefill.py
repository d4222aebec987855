"""Prompts cut into pieces that share a step with decoding requests.

`on` took effect only if the prompts of a round exceeded the token budget of a step, so that some prompt was cut.
V1 up to 0.10.2 forces it on, even where `off` is requested.
Source: vllm/engine/arg_utils.py (0.8.5:1501-1530, 0.10.2:1623, 0.18.1:2062-2090).
"""

from rlaudit.laboratory.factor import ArmTrace, Factor, Observation, switched
from rlaudit.laboratory.treatment import Treatment
from rlaudit.layers import Layer


def set_level(treatment: Treatment, level: str) -> Treatment:
    """`on` or `off`, by vLLM's engine argument."""
    return treatment.with_engine_args("chunked-prefill", enable_chunked_prefill=level == "on")


def observe(trace: ArmTrace) -> Observation:
    """Read the level from the loaded scheduler configuration and the size of the rounds."""
    enabled, budget = (
        trace.resolved.get("enable_chunked_prefill"),
        trace.resolved.get("max_num_batched_tokens"),
    )
    if enabled is None or budget is None:
        return Observation(None, "this engine's configuration does not say whether prompts are cut into chunks")
    if not enabled:
        return Observation("off", "loaded configuration: enable_chunked_prefill=False")
    submitted = trace.prompt_tokens_per_round
    if submitted <= budget:
        return Observation(
            None,
            f"chunking is enabled, but no prompt was cut: all {submitted} prompt tokens of a round fit one step of "
            f"{budget}",
        )
    return Observation("on", f"a round's {submitted} prompt tokens exceed a step's {budget}")


FACTOR = Factor(
    name="chunked-prefill",
    layer=Layer.INFERENCE_PATH,
    levels=("on", "off"),
    set_level=set_level,
    observe=observe,
    setting="enable_chunked_prefill",
    move=switched,
)
