"""Eager mode: off, except on a CPU until 0.9.1, where nothing else ran."""

from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved

_WORD = ("enforce_eager",)


def apply(view: Resolution) -> Resolved | None:
    """Return True on an old CPU release, which forces it, else False if it is declared as None."""
    if view.machine.platform == "cpu" and not view.since("0.9.2"):
        return Resolved(True, "forced on a CPU until 0.9.1", overrules=True)
    return Resolved(False, "off where nothing is written") if not view.since("0.9.0") else None


RESOLUTION = ResolutionRule(
    "enforce_eager",
    (
        Function("vllm/platforms/cpu.py", "CpuPlatform.check_and_update_config", _WORD),
        Function("vllm/config.py", "ModelConfig.__init__", _WORD),
        Function("vllm/config.py", "ModelConfig.__post_init__", _WORD),
    ),
    apply,
)
