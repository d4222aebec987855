"""Engine arguments of a release, as its catalogue declares them. One that it does not know is Python's own TypeError,
as in vLLM."""

import copy
import dataclasses
import json
from functools import partial
from pathlib import Path

from vllm._release import IS_V1, NAME, V1_IS_REFUSED

CATALOGUE = Path(__file__).parents[4] / "rlaudit" / "vllm" / "data"
# What a release leaves to its start, as this stand-in decides it.
DECIDED_AT_START = {
    "model": "",
    "dtype": "float32",
    "seed": 0,
    "max_model_len": 1024,
    "block_size": 16,
    "max_num_batched_tokens": 1024,
    "max_num_seqs": 256,
    "hf_overrides": None,
    "enable_prefix_caching": IS_V1,
    "enable_chunked_prefill": IS_V1,
    "async_scheduling": False,
    "disable_cascade_attn": True,
}


class _Checked:
    def create_engine_config(self):
        """Nothing here; the real one makes the configuration, and chooses the engine in the same way."""
        self._is_v1_supported_oracle()

    def _is_v1_supported_oracle(self):
        if V1_IS_REFUSED:
            raise NotImplementedError("VLLM_USE_V1=1 is not supported with device type=cpu.")


def _fields():
    releases = list(json.loads((CATALOGUE / "releases.json").read_text(encoding="utf-8")))
    upto = set(releases[: releases.index(NAME) + 1])
    histories = json.loads((CATALOGUE / "facts" / "engine.json").read_text(encoding="utf-8"))
    for name, history in histories.items():
        declared = [value for since, value in history if since in upto][-1:]
        if declared in ([], [None]):
            continue
        default, annotation, *_ = declared[0]
        value = DECIDED_AT_START.get(name, default)
        yield name, annotation, dataclasses.field(default_factory=partial(copy.copy, value))


EngineArgs = dataclasses.make_dataclass("EngineArgs", list(_fields()), bases=(_Checked,))
