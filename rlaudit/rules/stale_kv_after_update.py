"""Weight updates keep running requests and the prefix cache, so keys and values of old weights reach new requests.

What changed
    `pause_generation(mode="keep", clear_cache=False)` (0.16.0 on) freezes running requests and resumes them on the
    keys and values that the old weights made. That alone is how in-flight updates worked on V0. With prefix
    caching, which V1 turns on by itself, the blocks are also handed to requests that start after the update (0.18.1
    vllm/v1/engine/core.py:599-640).

Why it matters
    Without the cache, staleness ends with the requests in flight. With it there is no bound: a system prompt that
    every request shares is never computed by the current policy again.

Example
    Reported:

        to: 0.18.1
        trainer:
          weight_updates: in flight
          pause_mode: keep
          pause_clears_cache: false
          resets_prefix_cache: false
          salts_prefix_cache: false

    Use instead:

        engine: {enable_prefix_caching: false}

Safe to ignore when
    another call resets the cache, or prompts carry a salt that changes with the policy version.

How to confirm
    `rlaudit ablate weight-update`: it measures how far tokens that are served from the cache are from the new weights.
"""

from collections.abc import Iterator

from rlaudit.audit.audit import Audit
from rlaudit.audit.finding import Finding
from rlaudit.audit.moved_default import restores
from rlaudit.audit.rule import Rule
from rlaudit.audit.trial import Trial
from rlaudit.audit.update_path import cleaned
from rlaudit.layers import Layer
from rlaudit.settings.trainer_facts import PauseMode, WeightUpdates
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown

SETTING = "enable_prefix_caching"


def check(audit: Audit) -> Iterator[Finding]:
    """Report a pause with keep and clear_cache=False, with a cache that nothing else cleans."""
    facts, caching = audit.config.facts, audit.after.value(SETTING)
    if facts.pause_mode is not PauseMode.KEEP or facts.pause_clears_cache is not False:
        return
    clean = cleaned(audit)
    if facts.weight_updates is WeightUpdates.NONE or clean is True:
        return
    if caching is not True and not isinstance(caching, Unknown):
        return
    pauses = "pause_generation keeps requests and cache (mode=keep, clear_cache=False)"
    if facts.pause_arguments == []:
        pauses = "The weight update keeps requests and cache"
    version, severity = audit.after.version, Severity.NOTE
    if isinstance(caching, Unknown):
        message = (
            f"{pauses}, and whether prefix caching is on in vLLM {version} cannot be told: {caching.reason}. With "
        )
        message += f"caching, blocks of old weights serve new requests: set {SETTING} to false, or clear the cache."
    elif isinstance(clean, Unknown):
        message = f"{pauses} while prefix caching is on in vLLM {version}. Whether blocks of old weights serve new "
        message += f"requests cannot be told: {clean.reason}."
    else:
        certain = facts.resets_prefix_cache is False and facts.salts_prefix_cache is False
        severity = Severity.ERROR if certain else Severity.WARNING
        message = f"{pauses} while prefix caching is on in vLLM {version}: blocks of old weights serve new requests. "
        message += f"Set {SETTING} to false, or clear the cache."
    fix = audit.fix("Turn prefix caching off", restores(audit, SETTING, False), enable_prefix_caching=False)
    by = ("pause_mode", "pause_clears_cache", "weight_updates")
    yield RULE.finding(audit, severity, SETTING, message, fix, Trial(recipe="weight-update"), by=by)


RULE = Rule("stale-kv-after-update", Layer.INFERENCE_PATH, check)
