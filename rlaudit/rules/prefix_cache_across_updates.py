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

from rlaudit.audit.audit import Audit
from rlaudit.audit.finding import Finding
from rlaudit.audit.moved_default import restores
from rlaudit.audit.rule import Rule
from rlaudit.audit.trial import Trial
from rlaudit.audit.update_path import cleaned, updates
from rlaudit.layers import Layer
from rlaudit.settings.trainer_facts import PauseMode
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown

SETTING = "enable_prefix_caching"
CONFIRM = Trial(recipe="weight-update")


def check(audit: Audit) -> Iterator[Finding]:
    """Report caching that may be on with weight updates, unless something certainly cleans the cache."""
    caching, when, clean = audit.after.value(SETTING), updates(audit), cleaned(audit)
    facts = audit.config.facts
    # A prefix that was seen to outlive an update outweighs the calls that should have cleaned it.
    seen = facts.stale_prefixes if isinstance(facts.stale_prefixes, str) else ""
    if when is None or (clean is True and not seen) or (caching is not True and not isinstance(caching, Unknown)):
        return
    if facts.pause_mode is PauseMode.KEEP and facts.pause_clears_cache is False:
        return  # stale-kv-after-update reports it, with the pause as its cause.
    severity = Severity.NOTE
    if seen:
        severity = Severity.ERROR
        message = (
            f"Prefix caching is on, {when}, and the cache outlived some of them: {seen}. Reset it with every update."
        )
    elif isinstance(caching, Unknown):
        how = "the cache is not reset" if clean is False else "whether the cache is reset then is not told by this file"
        message = f"Whether prefix caching is on in vLLM {audit.after.version} cannot be told: {caching.reason}. "
        message += f"{when.capitalize()}, and {how}: with caching, reset it with every update."
    elif clean is False:
        certain = facts.salts_prefix_cache is False
        severity = Severity.ERROR if certain else Severity.WARNING
        message = f"Prefix caching is on in vLLM {audit.after.version} and {when}, but the cache is not reset. "
        message += f"Reset it with every update, or set {SETTING} to false."
    else:
        problem = f"cannot be told: {clean.reason}" if isinstance(clean, Unknown) else "is not told by this file"
        message = (
            f"Prefix caching is on in vLLM {audit.after.version} and {when}; whether the cache is reset then {problem}."
        )
        message += " Make sure that it is."
    fix = audit.fix("Turn prefix caching off", restores(audit, SETTING, False), enable_prefix_caching=False)
    yield RULE.finding(audit, severity, SETTING, message, fix, CONFIRM, by=("weight_updates",))


RULE = Rule("prefix-cache-across-updates", Layer.INFERENCE_PATH, check)
