"""Which attention kernels run: a variable until 0.14, a flag from 0.13.0 on, else by GPU generation."""

from rlaudit.rollout_config.node import Unknown
from rlaudit.vllm_versions.resolution_rule import Function, ResolutionRule, Resolved, View, engine_unknown, part

_CUDA = "vllm/platforms/cuda.py"
_AMPERE, _BLACKWELL = 80, 100


def apply(view: View) -> Resolved | None:
    """What is asked for, else the first choice of the release for a model without latent attention (MLA)."""
    if view.given("attention_backend") is not None and view.since("0.13.0"):
        return None
    nested = part(view, "attention_config", "backend")
    if nested is not None and view.since("0.13.0"):
        return Resolved(nested, "attention_config.backend")
    asked = view.variable("VLLM_ATTENTION_BACKEND")
    if asked is not None and not view.since("0.15.0"):
        return Resolved(asked, f"VLLM_ATTENTION_BACKEND={asked if not isinstance(asked, Unknown) else '?'}")
    if view.machine.platform == "cpu":
        return Resolved("CPU_ATTN" if view.since("0.11.1") else "TORCH_SDPA", "the only one on a CPU")
    if view.is_v1 is None:
        return engine_unknown(view, "the attention backend")
    return _default(view)


def _default(view: View) -> Resolved:  # noqa: PLR0911 - one line per decision
    machine, dtype = view.machine, view.given("dtype")
    if machine.capability < _AMPERE:
        if not view.is_v1:
            return Resolved("XFORMERS", f"V0's choice for {machine.name}")
        return Resolved(Unknown(f"the choice for {machine.name} depends on model and release"), "older than Ampere")
    if dtype in ("float32", "float"):
        if not view.is_v1:
            return Resolved("XFORMERS", "V0's choice for float32")
        return Resolved(Unknown("the choice for float32 depends on the release"), "float32")
    if not view.is_v1:
        return Resolved("FLASH_ATTN", f"V0's choice for {machine.name}")
    if machine.capability // 10 == _BLACKWELL // 10 and view.since("0.9.1"):
        return Resolved("FLASHINFER", f"first choice for {machine.name}; models with latent attention take others")
    return Resolved("FLASH_ATTN", f"first choice for {machine.name}; models with latent attention take others")


RESOLUTION = ResolutionRule(
    "attention_backend",
    (
        Function(_CUDA, "_get_backend_priorities"),
        Function(_CUDA, "CudaPlatformBase.get_attn_backend_cls"),
    ),
    apply,
)
