"""Whether cached prefixes of old weights can reach a request after a weight update, as far as the config tells.

Three things keep them away, each of them alone: a reset with the update, a pause that clears the cache, a salt that
changes with the policy. Where one of them cannot be told the danger is open: neither there nor excluded.
"""

from rlaudit.configs.syntax.node import Unknown
from rlaudit.inspection.audit import Audit

CLEANING = ("resets_prefix_cache", "salts_prefix_cache", "pause_clears_cache")


def updates(audit: Audit) -> str | None:
    """How weights are updated, as a clause for a sentence; None where they are not, or nobody said so."""
    setting = audit.config.trainer.get("weight_updates")
    if setting is None or setting.value in (None, "none"):
        return None
    return f"weights are updated {setting.value}" if setting.known else "weights are updated"


def cleaned(audit: Audit, names: tuple[str, ...] = CLEANING) -> bool | Unknown | None:
    """True where old prefixes are kept away, False where the cache is not reset, None where nobody said anything."""
    facts = [audit.config.trainer[name] for name in names if name in audit.config.trainer]
    if any(fact.value is True for fact in facts):
        return True
    reasons = dict.fromkeys(fact.value.reason for fact in facts if isinstance(fact.value, Unknown))
    if reasons:
        return Unknown("; ".join(reasons))
    return False if audit.config.says("resets_prefix_cache") is False else None
