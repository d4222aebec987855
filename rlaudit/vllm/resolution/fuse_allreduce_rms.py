"""Whether the sum over tensor parallel ranks is fused with the normalisation after it, which changes its rounding.

On by default from 0.17.0 on Hopper and Blackwell.
"""

from rlaudit.unknown import Unknown
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, number, part

_HOPPER, _BLACKWELL = 90, 100
# FlashInfer has a fused kernel for these and no others: with 16 ranks the pass does nothing.
_RANKS = (2, 4, 8)


def apply(view: Resolution) -> Resolved:  # noqa: PLR0911 - one for each reason
    """Return whether it is fused: with tensor parallelism, if FlashInfer has the kernel."""
    written = part(view, "compilation_config", "pass_config", "fuse_allreduce_rms")
    if written is not None:
        return Resolved(written, "compilation_config.pass_config.fuse_allreduce_rms")
    if not view.since("0.17.0"):
        return Resolved(False, "off by default until 0.16")
    ranks = view.given("tensor_parallel_size")
    if isinstance(ranks, Unknown):
        unknown = Unknown(f"tensor_parallel_size decides: {ranks.reason}", hangs_on=ranks.fact)
        return Resolved(unknown, "by tensor parallelism")
    if (number(ranks) or 1) <= 1:
        return Resolved(False, "one tensor parallel rank has nothing to sum")
    if number(ranks) not in _RANKS:
        return Resolved(False, f"FlashInfer's kernel takes {', '.join(map(str, _RANKS))} ranks")
    capability = view.machine.capability
    family = capability // 10 == _BLACKWELL // 10 if view.since("0.19.0") else capability == _BLACKWELL
    if capability != _HOPPER and not family:
        return Resolved(False, f"{view.machine.name} has no such kernel")
    backend, inductor = (part(view, "compilation_config", name) for name in ("backend", "use_inductor"))
    if backend == "eager" or inductor is False:
        return Resolved(False, "a pass of inductor, which the compilation config turns off")
    return _settings(view) or Resolved(True, f"on by default from 0.17.0 for {ranks} ranks on {view.machine.name}")


def _settings(view: Resolution) -> Resolved | None:
    if view.value("enforce_eager") is True or number(view.value("optimization_level")) in (0, 1):
        return Resolved(False, "not compiled at this optimization level")
    if view.machine.flashinfer is False:
        return Resolved(False, "FlashInfer is not installed")
    if view.since("0.29.0") and view.variable("VLLM_BATCH_INVARIANT") == "1":
        return Resolved(False, "VLLM_BATCH_INVARIANT turns it off")
    excluded = []
    if not view.since("0.21.0"):
        excluded = ["data_parallel_size", "pipeline_parallel_size"]
    elif view.since("0.23.0") and not view.since("0.24.0"):
        excluded = ["pipeline_parallel_size"]
    for name in excluded:
        value = view.given(name)
        if isinstance(value, Unknown):
            return Resolved(value, f"off with {name} above 1")
        if (number(value) or 1) > 1:
            return Resolved(False, f"off with {name} above 1")
    return None


RESOLUTION = ResolutionRule(
    "fuse_allreduce_rms",
    (
        Function("vllm/config/vllm.py", "enable_allreduce_rms_fusion"),
        *(
            Function("vllm/config/vllm.py", f"OPTIMIZATION_LEVEL_0{level}", ("fuse_allreduce_rms",))
            for level in range(4)
        ),
    ),
    apply,
)
