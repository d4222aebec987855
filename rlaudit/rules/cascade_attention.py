"""Cascade attention changes with the migration, or is set in a version that has none left.

What changed
    V0 had no cascade attention. V1 used it for batches that share a long prefix unless `disable_cascade_attn` was set.
    0.18.0 made "disabled" the default (vllm#36318). 0.32.0 removed the code, and ignores the flag.

Why it matters
    Cascade attention computes the shared prefix once for the whole batch. That is another kernel and another order of
    summation for exactly the prompts that RL repeats. A100s returned wrong results for a time (vllm#22103).

Example
    Reported:

        from: 0.8.5
        to: 0.10.2
        at_from: {environment: {VLLM_USE_V1: "0"}}

    Use instead:

        engine: {disable_cascade_attn: true}

Safe to ignore when
    prompts share fewer than 256 tokens or fewer than eight requests run at once: cascade attention is not used
    then.

How to confirm
    `rlaudit ablate CONFIG --from A --to B --factor cascade-attention`.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.moved_default import moved_default
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.vllm.milestones import NO_CASCADE_ATTENTION

SETTING = "disable_cascade_attn"
CONFIRM = Trial(("cascade-attention",))


def check(audit: Audit) -> Iterator[Finding]:
    """Report another default on the two sides, or a flag without effect."""
    setting = audit.config.engine.get(SETTING)
    is_requested = setting is not None and setting.place is not None and setting.value is False
    if is_requested and audit.after.version >= NO_CASCADE_ATTENTION:
        message = f"{SETTING}=false requests cascade attention, which {audit.after.version} does not have any more."
        yield RULE.finding(audit, Severity.NOTE, SETTING, message, confirm=CONFIRM)
        return
    moved = moved_default(audit, SETTING)
    if moved is None or not isinstance(moved.before.value, bool) or not isinstance(moved.after.value, bool):
        return
    shares = audit.before if moved.before.value is False else audit.after
    if shares.value("enable_prefix_caching") is False:
        return  # Without it no two requests have a block in common, and nothing cascades.
    was, now = ("off" if side.value else "on" for side in (moved.before, moved.after))
    message = (
        f"Nothing sets {SETTING}, so vLLM decides: cascade attention is {was} with {engine_of(audit.before)} and {now} "
        f"with {engine_of(audit.after)}. Shared prefixes round differently."
    )
    fix = None
    if now == "on":
        message += " Disable cascade attention to keep what runs today."
        fix = audit.fix("Keep cascade attention off, as before the migration", safe=True, disable_cascade_attn=True)
    yield RULE.finding(audit, Severity.NOTE, SETTING, message, fix, CONFIRM)


RULE = Rule("cascade-attention", Layer.INFERENCE_PATH, check, defaults=("disable_cascade_attn",))
