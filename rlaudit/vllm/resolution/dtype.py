"""dtype=auto: what the weights are cast to. A float32 checkpoint runs as float16 until 0.9.0, as bfloat16 later."""

from typing import Any

from rlaudit.unknown import Unknown
from rlaudit.vllm.milestones import FLOAT32_RUNS_AS_BFLOAT16
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved

_FILES = ("vllm/config.py", "vllm/config/__init__.py", "vllm/config/model.py")


def apply(view: Resolution) -> Resolved | None:
    """Return the checkpoint's dtype, if the checkpoint is on this machine."""
    if view.given("dtype") not in (None, "auto"):
        return None
    checkpoint = view.checkpoint
    if checkpoint is None:
        missing = Unknown("dtype=auto is the checkpoint's dtype, and the checkpoint is not here")
        return Resolved(missing, "taken from the checkpoint", overrules=True)
    dtype, why = _of_checkpoint(view, checkpoint)
    return Resolved(dtype, why, overrules=True)


def _of_checkpoint(view: Resolution, checkpoint: Any) -> tuple[Any, str]:
    inner = checkpoint.get("text_config") if isinstance(checkpoint.get("text_config"), dict) else {}
    written = checkpoint.get("torch_dtype") or inner.get("torch_dtype")
    newer = checkpoint.get("dtype") or inner.get("dtype")
    if written is None and newer is not None and not view.since("0.11.1"):
        # transformers reads the newer key from 4.56 on, which is younger than these releases.
        return Unknown("config.json has `dtype` but no `torch_dtype`: which of them counts depends on transformers"), ""
    dtype = written or newer
    if dtype is None and view.since("0.9.1"):
        return Unknown("config.json names no dtype: vLLM reads it from the safetensors files"), ""
    if dtype is None or dtype == "float32":
        preferred = _preferred(view)
        return preferred, f"a float32 checkpoint is cast to {preferred}"
    return str(dtype).removeprefix("torch."), "the checkpoint's own dtype"


def _preferred(view: Resolution) -> str:
    if not view.since(FLOAT32_RUNS_AS_BFLOAT16):
        return "float16"
    return "float16" if view.machine.platform == "cuda" and view.machine.capability < 80 else "bfloat16"


RESOLUTION = ResolutionRule(
    "dtype",
    tuple(
        Function(path, name)
        for path in _FILES
        for name in ("_find_dtype", "_resolve_auto_dtype", "_get_and_verify_dtype")
    ),
    apply,
)
