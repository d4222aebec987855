"""The prefix cache survives weight updates, so prompts are continued from keys and values of an older policy.

What changed
    V1 turns prefix caching on by itself, and no way of loading weights clears it. `update_weights`, `reload_weights`
    and `collective_rpc` leave that to the caller in every release (vllm#46125). `pause_generation(clear_cache=True)`
    and `reset_prefix_cache()` clear it; a cache salt that changes with the policy version makes old blocks unreachable.
    `pause_generation(mode="keep", clear_cache=False)` (0.16.0 on) freezes running requests. They resume on keys and
    values of the old weights, as with in-flight updates on V0. With prefix caching, requests that start after the
    update also get the old blocks (0.18.1 vllm/v1/engine/core.py:599-640).

Why it matters
    The engine samples from a mixture of two policies that the trainer cannot recompute. The mismatch grows with the
    number of updates that a cached prefix outlives (NeMo-RL#4018 saw up to 17). A system prompt that
    every request shares is never computed again with the current policy.

Example
    Reported:

        to: 0.18.1
        trainer: {weight_updates: between rollouts, resets_prefix_cache: false, salts_prefix_cache: false}

    Use instead:

        engine: {enable_prefix_caching: false}

Safe to ignore when
    you want stale prefixes, and the objective corrects for them as off-policy.

How to confirm
    `rlaudit ablate weight-update` measures how far tokens after a cached prefix are from the new weights.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.moved_default import restores
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.rules.audit.update_path import cleaned, updates
from rlaudit.settings.trainer_facts import PauseMode, WeightUpdates
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown

SETTING = "enable_prefix_caching"


def check(audit: Audit) -> Iterator[Finding]:
    """Report caching that may be on with weight updates, unless something certainly cleans the cache."""
    facts, caching, clean, keeps = audit.config.facts, audit.after.value(SETTING), cleaned(audit), _keeps(audit)
    when = keeps or updates(audit)
    # A prefix that was seen to outlive an update outweighs the calls that should have cleaned it.
    seen = facts.stale_prefixes if isinstance(facts.stale_prefixes, str) else ""
    if when is None or (clean is True and not seen) or (caching is not True and not isinstance(caching, Unknown)):
        return
    severity, version = Severity.NOTE, audit.after.version
    if seen:
        severity = Severity.ERROR
        message = f"Prefix caching is on, {when}, and the cache outlived some updates: {seen}. "
        message += "Reset the cache with every update."
    elif isinstance(caching, Unknown):
        how = ", and the cache is not reset" if clean is False else ", and this file shows no reset of the cache"
        message = f"It is not known whether prefix caching is on in vLLM {version}: {caching.reason}. If prefix "
        message += f"caching is on, keys and values of old weights serve new requests, since {when}"
        message += f"{'' if keeps else how}. "
        message += "Reset the cache with every update."
    elif clean is False or (keeps and clean is None):
        certain = facts.salts_prefix_cache is False and (not keeps or facts.resets_prefix_cache is False)
        severity = Severity.ERROR if certain else Severity.WARNING
        not_reset = "" if keeps else ", but the cache is not reset"
        message = f"Prefix caching is on in vLLM {version}, and {when}{not_reset}. So keys and values of old weights "
        message += f"serve new requests. Reset the cache with every update, or set {SETTING} to false."
    else:
        problem = "This file does not say whether each update resets the cache"
        if isinstance(clean, Unknown):
            problem = f"It is not known whether each update resets the cache: {clean.reason}"
        message = f"Prefix caching is on in vLLM {version}, and {when}. {problem}."
        message += " Make sure that each update resets it."
    fix = audit.fix("Turn prefix caching off", restores(audit, SETTING, False), enable_prefix_caching=False)
    by = ("pause_mode", "pause_clears_cache", "weight_updates") if keeps else ("weight_updates",)
    yield RULE.finding(audit, severity, SETTING, message, fix, Trial(recipe="weight-update"), by=by)


def _keeps(audit: Audit) -> str | None:
    """Return a clause with the pause that keeps requests and cache; None for none, or without updates."""
    facts = audit.config.facts
    if facts.pause_mode is not PauseMode.KEEP or facts.pause_clears_cache is not False:
        return None
    if facts.weight_updates is WeightUpdates.NONE:
        return None
    if facts.pause_arguments == []:
        return "the weight update keeps requests and cache"
    return "pause_generation keeps requests and cache (mode=keep, clear_cache=False)"


RULE = Rule("prefix-cache-across-updates", Layer.INFERENCE_PATH, check)
