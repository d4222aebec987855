"""A stand-in for vLLM with the classes, signatures and processes that the recorder hooks, and no model.

FAKE_VLLM=V1 has V1's (the default, release 0.18.1), FAKE_VLLM=V0 has V0's (0.8.5). What a request is given depends on
its prompt, its index and its seed alone, so that two runs are alike.
FAKE_VLLM_CORE: how V1's engine core gets a process of its own, `fork` or `spawn`; it has none without.
"""

import os

IS_V1 = os.environ.get("FAKE_VLLM", "V1") == "V1"
__version__ = "0.18.1" if IS_V1 else "0.8.5"


def __getattr__(name):
    # As in vLLM: `import vllm` alone imports no engine.
    if name == "LLM":
        from vllm.llm import LLM

        return LLM
    if name == "SamplingParams":
        from vllm.sampling_params import SamplingParams

        return SamplingParams
    raise AttributeError(name)
