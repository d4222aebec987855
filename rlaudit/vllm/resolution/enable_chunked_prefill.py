"""Chunked prefill: off in V0 below 32k context, on in V1; until 0.11.0 the config cannot turn it off there.

It changes the shape of the prefill batches and with it the last bits of the prompt's keys and values.
"""

from rlaudit.unknown import Unknown
from rlaudit.vllm.milestones import HONOURS_NO_CHUNKED_PREFILL
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, engine_unknown, number, task_of

_ARGUMENTS = "vllm/engine/arg_utils.py"
_WORD = ("enable_chunked_prefill",)
_LONG = 32_768


def apply(view: Resolution) -> Resolved | None:
    """Return whether prompts are chunked: always in V1, in V0 only for long contexts."""
    if view.is_v1 is None:
        return engine_unknown(view, "chunked prefill")
    if not view.is_v1:
        return _v0(view)
    task = task_of(view)
    if task not in (None, "auto", "generate"):
        return Resolved(Unknown("the default differs for models that do not generate"), "not a generating model")
    if not view.since(HONOURS_NO_CHUNKED_PREFILL):
        written = view.given("enable_chunked_prefill")
        why = "V1 ignores a written false until 0.11.0" if written is False else "V1 always chunks prefills"
        return Resolved(True, why, overrules=not isinstance(written, Unknown))
    return Resolved(True, "V1 chunks prefills by default for models that generate")


def _v0(view: Resolution) -> Resolved:
    if view.machine.platform == "cpu":
        return Resolved(False, "V0 never chunks by default on a CPU")
    length = view.value("max_model_len")
    if isinstance(length, Unknown):
        unknown = Unknown(f"V0 chunks prefills above {_LONG} tokens of context: {length.reason}", hangs_on=length.fact)
        return Resolved(unknown, "V0")
    if (number(length) or 0) <= _LONG:
        return Resolved(False, f"V0 chunks prefills only above {_LONG} tokens of context")
    if view.given("speculative_config") is not None or view.given("enable_lora") is True:
        return Resolved(False, "V0 does not chunk with speculative decoding or LoRA")
    return Resolved(
        Unknown("V0 chunks long contexts unless the model is multimodal, MLA or uses a sliding window"), "long context"
    )


RESOLUTION = ResolutionRule(
    "enable_chunked_prefill",
    (
        Function(_ARGUMENTS, "EngineArgs._set_default_args_v0", _WORD),
        Function(_ARGUMENTS, "EngineArgs._set_default_args_v1", _WORD),
        Function(_ARGUMENTS, "EngineArgs._set_default_args", _WORD),
        Function(
            _ARGUMENTS,
            "EngineArgs._set_default_chunked_prefill_and_prefix_caching_args",
            (*_WORD, "default_chunked_prefill"),
        ),
        Function("vllm/platforms/cpu.py", "CpuPlatform.check_and_update_config", _WORD),
    ),
    apply,
)
