"""The seed: none in V0 and in 0.8.5, 0 in V1 from 0.9.0 on.

With one seed for every replica, replicas that get the same prompts sample the same tokens.
"""

from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, engine_unknown

_WORD = ("seed",)


def apply(view: Resolution) -> Resolved | None:
    """Return 0 on V1 from 0.9.0, which still declares None."""
    if view.since("0.12.0"):
        return None
    if view.is_v1 is None:
        return engine_unknown(view, "the default seed") if view.since("0.9.0") else None
    if view.is_v1 and view.since("0.9.0"):
        return Resolved(0, "V1 seeds with 0")
    return Resolved(None, "unseeded: every start samples differently")


RESOLUTION = ResolutionRule(
    "seed",
    (
        Function("vllm/config.py", "ModelConfig.__post_init__", _WORD),
        Function("vllm/config/__init__.py", "ModelConfig.__post_init__", _WORD),
        Function("vllm/config/model.py", "ModelConfig.__post_init__", _WORD),
        Function("vllm/engine/arg_utils.py", "EngineArgs.__post_init__", _WORD),
    ),
    apply,
)
