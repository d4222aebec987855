"""Attention over a prefix that all requests of a batch share, computed once. Off by default since 0.18.0, gone in
0.32.0.

Permission is not use: the runner decides for every batch. FLASH_ATTN takes it only if at least 8 requests share at
least 256 tokens, and its cost model says that it pays. So `on` took effect if batches used it, which the worker counts.
To see it, the recipe's prompts must begin with 256 tokens or more in common; the ones that ship share fewer. It also
keeps those batches out of full CUDA graphs, which is a second difference. CPUs, the V0 engine and model runner V2 do
not have it. Source: vllm/config/model.py (0.17.1:219, 0.18.0:220, 0.32.0:312), vllm/v1/attention/backends/flash_attn.py
(0.18.1:1008-1016), vllm/v1/worker/gpu_model_runner.py (0.18.1:2136, 3367), vllm/platforms/cpu.py.
"""

from rlaudit.laboratory.factor import ArmTrace, Factor, Observation, always
from rlaudit.laboratory.treatment import Treatment
from rlaudit.layers import Layer

# use_cascade_attention in vllm/v1/attention/backends/flash_attn.py, the same numbers from 0.8.5 to 0.26.0.
SHARED_TOKENS = 256
REQUESTS = 8


def set_level(treatment: Treatment, level: str) -> Treatment:
    """`on` or `off`, by vLLM's engine argument, which disables it."""
    return treatment.with_engine_args("cascade-attention", disable_cascade_attn=level == "off")


def observe(trace: ArmTrace) -> Observation:
    """Read it from the batches that used it, as counted in the worker; off if the configuration forbids it."""
    disabled = trace.resolved.get("disable_cascade_attn")
    if disabled is None:
        return Observation(None, "this engine's configuration has no disable_cascade_attn")
    if disabled:
        return Observation("off", f"loaded configuration: disable_cascade_attn={disabled}")
    ran = trace.loaded.get("ran")
    if ran is None:
        return Observation(None, "cascade attention is allowed, but the worker counted no batch")
    cascade = ran["cascade"]
    if cascade is None:
        return Observation(None, "cascade attention is allowed, but this model runner has none")
    if cascade["used"]:
        return Observation("on", f"{cascade['used']} of {cascade['considered']} batches used cascade attention")
    return Observation(
        None,
        f"allowed, but none of {cascade['considered']} batches used it: at most {cascade['most_requests']} requests "
        f"shared at most {cascade['longest_prefix']} tokens; it takes {REQUESTS} requests whose prompts share "
        f"{SHARED_TOKENS} tokens",
    )


FACTOR = Factor(
    name="cascade-attention",
    layer=Layer.INFERENCE_PATH,
    levels=("on", "off"),
    set_level=set_level,
    observe=observe,
    setting="disable_cascade_attn",
    move=always("off"),
    reads={"disable_cascade_attn": ("model_config.disable_cascade_attn",)},
)
