"""What makes the engine: `LLM`, vLLM's server, or a program that calls the engine's class. vLLM calls it the usage
context and chooses batch sizes by it; a program has ENGINE_CONTEXT unless it names another one.

Source: vllm/v1/engine/async_llm.py, from_engine_args, and vllm/engine/arg_utils.py, where defaults depend on it.
"""

import re

_MADE = re.compile(r"\b(?:from_engine_args|from_vllm_config|AsyncLLM|AsyncLLMEngine|LLMEngine)\(")
# What makes the engine in vLLM's own way, or says that it does.
_OF_VLLM = re.compile(r"\bOPENAI_API_SERVER\b|\bLLM_CLASS\b|\bbuild_async_engine_client|\brun_server|(?<!\w)LLM\(")


def makes_bare_engine(text: str) -> bool:
    """Return whether a Python file makes the engine's class itself, and in no other way."""
    return _MADE.search(text) is not None and _OF_VLLM.search(text) is None
