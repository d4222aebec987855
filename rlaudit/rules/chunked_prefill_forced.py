"""Chunked prefill is written as off, and a version turns it on all the same or warns of it.

What changed
    V1 set `enable_chunked_prefill` to true for text generation, over a false as well (0.10.2
    vllm/engine/arg_utils.py:1623, 0.11.0 :1548). 0.11.1 takes a false, and warns that the engine may crash or produce
    incorrect outputs (0.18.1 vllm/engine/arg_utils.py:2081).

Why it matters
    The config says one thing and the engine does another, without an error. An experiment that compares chunked prefill
    on and off compares on with on. After a move past 0.11.0 the false acts for the first time, and what runs changes
    although the config did not.

Example
    Reported:

        from: 0.8.5
        to: 0.10.2
        engine: {enable_chunked_prefill: false}

    Use instead:

        engine: {enable_chunked_prefill: true}

Safe to ignore when
    it does not matter to you whether prompts are chunked.

How to confirm
    `rlaudit ablate CONFIG --from A --to B --factor chunked-prefill`: it reports that the level did not take effect.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit, Side
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.moved_default import restores
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.settings.rollout_config import Origin
from rlaudit.severity import Severity
from rlaudit.vllm.milestones import HONOURS_NO_CHUNKED_PREFILL

SETTING = "enable_chunked_prefill"


CONFIRM = Trial(("chunked-prefill",))


def check(audit: Audit) -> Iterator[Finding]:
    """Report a false that the release overrules, or that only the release before it did."""
    setting = audit.config.engine.get(SETTING)
    if setting is None or setting.value is not False:
        return
    if not _overruled(audit.after):
        yield from _begins_to_act(audit)
        return
    message = (
        f"{SETTING} is false, but V1 of vLLM {audit.after.version} ignores that and chunks prompts. "
        "Write true, which is what runs, or move to 0.11.1, which takes a false."
    )
    fix = audit.fix("Write down what runs", restores(audit, SETTING, True), enable_chunked_prefill=True)
    yield RULE.finding(audit, Severity.WARNING, SETTING, message, fix, CONFIRM)


def _begins_to_act(audit: Audit) -> Iterator[Finding]:
    before = audit.before.config.engine.get(SETTING)
    if before is None or before.value is not False or not _overruled(audit.before):
        yield from _only_warns(audit)
        return
    message = (
        f"{SETTING} is false, but V1 of vLLM {audit.before.version} ignores that and chunks prompts. vLLM "
        f"{audit.after.version} obeys: it computes long prompts in one piece, which changes their rounding. "
        f"Write {SETTING}: true to keep what runs today."
    )
    fix = audit.fix("Write down what runs today", safe=True, enable_chunked_prefill=True)
    yield RULE.finding(audit, Severity.WARNING, SETTING, message, fix, CONFIRM)


def _only_warns(audit: Audit) -> Iterator[Finding]:
    """Report that V1 takes the false and warns of wrong outputs."""
    if audit.after.version < HONOURS_NO_CHUNKED_PREFILL:
        return
    message = (
        f"{SETTING} is false. If the model supports chunks, vLLM {audit.after.version} warns that the engine may "
        "then crash or produce incorrect outputs. Write true, unless you have checked the outputs without chunks."
    )
    yield RULE.finding(audit, Severity.NOTE, SETTING, message, confirm=CONFIRM)


def _overruled(side: Side) -> bool:
    runs = side.engine(SETTING)
    return runs.value is True and runs.origin is Origin.ENGINE


RULE = Rule("chunked-prefill-forced", Layer.INFERENCE_PATH, check)
