"""What a vLLM release offers, by looking at its code, without starting an engine. A worker script.

job       nothing
result    features: {"logprobs_mode", "async_scheduling", "attention_backend", "batch_invariance"}
"""

import dataclasses


def run(job, channel):
    """Look at the engine's argument class and at its environment variables."""
    channel.phase("launch")
    from vllm import envs
    from vllm.engine.arg_utils import EngineArgs

    arguments = {field.name for field in dataclasses.fields(EngineArgs)}
    return {
        "features": {
            "logprobs_mode": "logprobs_mode" in arguments,
            "async_scheduling": "async_scheduling" in arguments,
            "attention_backend": "attention_backend" in arguments,
            "batch_invariance": has_batch_invariance(envs),
        }
    }


def has_batch_invariance(envs):
    """Later releases declare the variable in vllm.envs; before that a module of its own reads it."""
    from importlib.util import find_spec

    if "VLLM_BATCH_INVARIANT" in getattr(envs, "environment_variables", {}):
        return True
    return find_spec("vllm.model_executor.layers.batch_invariant") is not None
