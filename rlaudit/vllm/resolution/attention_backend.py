"""Which attention kernels run: a variable until 0.14, a flag from 0.13.0 on, else by GPU generation.

From 0.11.1 on a release goes through a list and takes the first backend that supports the head size, the dtype and the
dtype of the key-value cache (vllm/platforms/cuda.py, CudaPlatformBase.get_valid_backends); before that it knew a few
cases by name.
"""

from rlaudit.unknown import Unknown
from rlaudit.vllm.batch_invariant_backends import ASKS_BACKEND
from rlaudit.vllm.milestones import NO_BACKEND_VARIABLE
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, engine_unknown, part

_CUDA = "vllm/platforms/cuda.py"
_AMPERE, _HOPPER, _BLACKWELL = 80, 90, 100
_FLOAT32 = ("float32", "float")
_UNQUANTIZED_CACHE = (None, "auto", "float16", "bfloat16")
_DATACENTER_BLACKWELL = range(_BLACKWELL, _BLACKWELL + 10)


def apply(view: Resolution) -> Resolved | None:
    """Return the requested backend, else the first choice of the release for a model without latent attention (MLA)."""
    if view.given("attention_backend") is not None and view.since("0.13.0"):
        return None
    nested = part(view, "attention_config", "backend")
    if nested is not None and view.since("0.13.0"):
        return Resolved(nested, "attention_config.backend")
    variable = view.variable("VLLM_ATTENTION_BACKEND")
    if variable is not None and not view.since(NO_BACKEND_VARIABLE):
        return Resolved(variable, f"VLLM_ATTENTION_BACKEND={variable if not isinstance(variable, Unknown) else '?'}")
    if view.machine.platform == "cpu":
        return Resolved("CPU_ATTN" if view.since("0.11.1") else "TORCH_SDPA", "the only one on a CPU")
    if view.is_v1 is None:
        return engine_unknown(view, "the attention backend")
    return _default(view) if view.is_v1 else _of_v0(view)


def _of_v0(view: Resolution) -> Resolved:
    if view.machine.capability < _AMPERE:
        return Resolved("XFORMERS", f"V0's choice for {view.machine.name}")
    if view.given("dtype") in _FLOAT32:
        return Resolved("XFORMERS", "V0's choice for float32")
    return Resolved("FLASH_ATTN", f"V0's choice for {view.machine.name}")


def _default(view: Resolution) -> Resolved:  # noqa: PLR0911 - one line per decision
    dtype, cache, name = view.given("dtype"), view.given("kv_cache_dtype"), view.machine.name
    if view.machine.capability < _AMPERE:
        return Resolved(Unknown(f"the choice for {name} depends on model and release"), "older than Ampere")
    if isinstance(dtype, Unknown):
        return Resolved(dtype, "by dtype")
    if dtype in _FLOAT32:
        return Resolved("TRITON_ATTN" if view.since("0.11.1") else "FLEX_ATTENTION", "the first choice for float32")
    prefers_flashinfer = _prefers_flashinfer(view)
    if isinstance(prefers_flashinfer, Unknown):
        return Resolved(prefers_flashinfer, f"FlashInfer is the first choice for {name}")
    if prefers_flashinfer:
        return Resolved("FLASHINFER", f"first choice for {name}; models with latent attention take others")
    if cache not in _UNQUANTIZED_CACHE:
        return _for_quantized_cache(view, cache)
    return Resolved("FLASH_ATTN", f"first choice for {name}; models with latent attention take others")


def _prefers_flashinfer(view: Resolution) -> bool | Unknown:
    """Return whether FlashInfer is the first choice: on a data centre Blackwell with the package.

    A Blackwell of 10.0, from 0.11.1 on of all 10.x. The package is optional until 0.11.0.

    FlashInfer is not batch invariant, and releases check that only from 0.20.0 on.
    """
    capability, installed = view.machine.capability, view.machine.flashinfer
    family = _DATACENTER_BLACKWELL if view.since("0.11.1") else (_BLACKWELL,)
    if capability not in family or not view.since("0.9.1") or installed is False:
        return False
    if view.version >= ASKS_BACKEND and view.variable("VLLM_BATCH_INVARIANT") == "1":
        return False
    if installed is None and not view.since("0.11.1"):
        return Unknown("FlashInfer is an optional package of this release, and FLASH_ATTN the choice without it")
    return True


def _for_quantized_cache(view: Resolution, cache: object) -> Resolved:
    """Return the choice for a quantized cache: FlashAttention reads fp8 only in its third version, Hopper's."""
    machine = view.machine
    if isinstance(cache, Unknown) or not str(cache).startswith("fp8") or not view.since("0.11.1"):
        return Resolved(
            Unknown(f"the choice for kv_cache_dtype={cache} depends on model and release"), "by cache dtype"
        )
    if machine.capability == _HOPPER:
        return Resolved("FLASH_ATTN", f"first choice for {machine.name}, also for kv_cache_dtype={cache}")
    chosen = "TRITON_ATTN" if machine.flashinfer is False else "FLASHINFER"
    return Resolved(chosen, f"first choice for kv_cache_dtype={cache} on {machine.name}")


RESOLUTION = ResolutionRule(
    "attention_backend",
    (
        Function(_CUDA, "_get_backend_priorities"),
        Function(_CUDA, "CudaPlatformBase.get_attn_backend_cls"),
    ),
    apply,
)
