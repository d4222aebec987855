"""The prefix cache survives weight updates, so prompts are continued from keys and values of an older policy.

What changed
    V1 turns prefix caching on by itself, and no way of loading weights clears it: `update_weights`,
    `reload_weights` and `collective_rpc` leave it to the caller in every release (vllm#46125).
    `pause_generation(clear_cache=True)` and `reset_prefix_cache()` clear it; a cache salt that changes with the
    policy version makes old blocks unreachable.

Why it matters
    The engine samples from a mixture of two policies that the trainer cannot recompute. The mismatch grows with the
    number of updates that a cached prefix outlives (NeMo-RL#4018 saw up to 17).

Example
    Reported:

        to: 0.18.1
        trainer: {weight_updates: between rollouts, resets_prefix_cache: false, salts_prefix_cache: false}

    Use instead:

        engine: {enable_prefix_caching: false}

Safe to ignore when
    stale prefixes are wanted and corrected for, as an off-policy term of the objective.

How to confirm
    `rlaudit ablate weight-update`: it measures how far tokens that are served from the cache are from the new weights.
"""

from collections.abc import Iterator

from rlaudit.inspection.audit import Audit, Rule
from rlaudit.inspection.finding import Finding, Severity
from rlaudit.inspection.moved_default import restores
from rlaudit.layers import Layer

SETTING = "enable_prefix_caching"
CONFIRM = "rlaudit ablate weight-update"


def check(audit: Audit) -> Iterator[Finding]:
    """Caching on, weights updated, and nothing known that cleans the cache."""
    says = audit.config.says
    if audit.after.value(SETTING) is not True or says("weight_updates") not in ("between rollouts", "in flight"):
        return
    if says("resets_prefix_cache") is True or says("salts_prefix_cache") is True or says("pause_clears_cache") is True:
        return
    if says("pause_mode") == "keep" and says("pause_clears_cache") is False:
        return  # stale-kv-after-update says it, with the pause as its cause
    when = f"Prefix caching is on in vLLM {audit.after.version} and weights are updated {says('weight_updates')}"
    if says("resets_prefix_cache") is False:
        certain = says("salts_prefix_cache") is False
        severity = Severity.ERROR if certain else Severity.WARNING
        message = f"{when}, but the cache is not reset. Reset it with every update, or set {SETTING} to false."
    else:
        severity = Severity.NOTE
        message = f"{when}; whether the cache is reset then is not told by this file. Make sure that it is."
    fix = audit.fix("Turn prefix caching off", restores(audit, SETTING, False), enable_prefix_caching=False)
    yield RULE.finding(audit, severity, SETTING, message, fix, CONFIRM)


RULE = Rule("prefix-cache-across-updates", Layer.INFERENCE_PATH, check)
