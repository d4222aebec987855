"""Cascade attention: unknown to V0, on in V1 until 0.17, off by default from 0.18.0, gone in 0.32.0.

It computes a prefix that many requests share only once, with another order of additions, if the batch makes that
worthwhile: the same request then gets other logprobs in another batch.
"""

from rlaudit.vllm.milestones import BATCH_INVARIANCE, NO_CASCADE_ATTENTION
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved

_WORD = ("disable_cascade_attn",)


def apply(view: Resolution) -> Resolved | None:  # noqa: PLR0911 - one line per decision
    """Return True if the release, the device or another setting excludes cascade attention."""
    if view.since(NO_CASCADE_ATTENTION):
        return Resolved(True, "cascade attention was removed in 0.32.0", overrules=True)
    if view.is_v1 is False:
        return Resolved(True, "V0 has no cascade attention", overrules=True)
    if view.machine.platform == "cpu" and view.since("0.9.1"):
        return Resolved(True, "forced on a CPU", overrules=True, at="vllm/platforms/cpu.py")
    if view.since(BATCH_INVARIANCE) and view.variable("VLLM_BATCH_INVARIANT") == "1":
        return Resolved(True, "VLLM_BATCH_INVARIANT turns it off", overrules=True)
    if view.since("0.19.0") and view.given("speculative_config") is not None and view.value("async_scheduling") is True:
        return Resolved(True, "off with speculative decoding and asynchronous scheduling", overrules=True)
    if not view.since("0.11.1") and view.value("cudagraph_mode") == "FULL":
        return Resolved(True, "off with full CUDA graphs until 0.11.0", overrules=True)
    return None


RESOLUTION = ResolutionRule(
    "disable_cascade_attn",
    (
        Function("vllm/platforms/cpu.py", "CpuPlatform.check_and_update_config", _WORD),
        *(
            Function(path, "VllmConfig.__post_init__", _WORD)
            for path in ("vllm/config.py", "vllm/config/__init__.py", "vllm/config/vllm.py")
        ),
    ),
    apply,
)
