"""What a vLLM release offers, by looking at its code, without starting an engine. A worker script.

job       nothing
result    features: {"logprobs_modes": [...], "async_scheduling", "attention_backend", "batch_invariance"}
"""

import dataclasses
import typing


def run(job, channel):
    """Look at the engine's argument class and at its environment variables."""
    channel.phase("launch")
    from vllm import envs
    from vllm.engine.arg_utils import EngineArgs

    arguments = {field.name for field in dataclasses.fields(EngineArgs)}
    return {
        "features": {
            "logprobs_modes": logprobs_modes(EngineArgs) if "logprobs_mode" in arguments else [],
            "async_scheduling": "async_scheduling" in arguments,
            "attention_backend": "attention_backend" in arguments,
            "batch_invariance": has_batch_invariance(envs),
        }
    }


def logprobs_modes(engine_args):
    """The values `logprobs_mode` takes, from its type; empty when the type does not list them."""
    try:
        kind = typing.get_type_hints(engine_args)["logprobs_mode"]
    except Exception:
        return []
    return [str(choice) for choice in typing.get_args(kind)]


def has_batch_invariance(envs):
    """Later releases declare the variable in vllm.envs; before that a module of its own reads it."""
    from importlib.util import find_spec

    if "VLLM_BATCH_INVARIANT" in getattr(envs, "environment_variables", {}):
        return True
    return find_spec("vllm.model_executor.layers.batch_invariant") is not None
