"""A stand-in named vllm with an AsyncLLM whose every token is known, and which can be told to go wrong.

Loaded by the real worker in a real process. FAKE_AILMENT: lose (the first request never ends after a resume), repeat
(its first token after a resume comes twice), leak (it samples while paused).
"""

from vllm.sampling_params import SamplingParams

__all__ = ["SamplingParams"]
