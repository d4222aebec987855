"""Whether a config asks for batch invariance, and which attention backend it chooses."""

from typing import Any

from rlaudit.rules.audit.audit import Side
from rlaudit.vllm.milestones import NO_BACKEND_VARIABLE
from rlaudit.vllm.resolve import part

VARIABLE = "VLLM_BATCH_INVARIANT"
BACKEND_VARIABLE = "VLLM_ATTENTION_BACKEND"


def asks_for_batch_invariance(side: Side) -> bool:
    """Return whether the variable is set to a number other than 0, as vLLM reads it; False for an unknown value."""
    setting = side.variable(VARIABLE)
    if setting is None or not setting.known:
        return False
    text = str(int(setting.value) if isinstance(setting.value, bool) else setting.value).strip()
    return text.lstrip("-").isdigit() and int(text) != 0


def attention_backend(side: Side) -> Any:
    """Return the backend that the config chooses, by argument, nested config or variable; None if it leaves it open."""
    chosen = side.config.engine.get("attention_backend")
    if chosen is not None and chosen.value not in (None, "auto") and side.exists("attention_backend"):
        return chosen.value
    nested = part(side.resolution, "attention_config", "backend")
    if nested is not None and side.exists("attention_config"):
        return nested
    variable = side.variable(BACKEND_VARIABLE)
    if variable is not None and side.version < NO_BACKEND_VARIABLE:
        return variable.value or None if variable.known else variable.value
    return None
