"""Chunked prefill is written as off, and this version turns it on all the same.

What changed
    V1 set `enable_chunked_prefill` to true for text generation whatever was asked for (0.10.2
    vllm/engine/arg_utils.py:1623, 0.11.0 :1548). 0.11.1 takes a false, with a warning.

Why it matters
    The config says one thing and the engine does another, without an error. An experiment that compares chunked
    prefill on and off compares on with on.

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
    `rlaudit ablate` with factor `chunked-prefill`: it reports the level as not engaged.
"""

from collections.abc import Iterator

from rlaudit.configs.rollout_config import Origin
from rlaudit.inspection.audit import Audit, Rule
from rlaudit.inspection.finding import Finding, Severity
from rlaudit.inspection.moved_default import restores
from rlaudit.layers import Layer

SETTING = "enable_chunked_prefill"


def check(audit: Audit) -> Iterator[Finding]:
    """A false that this release overrules."""
    said, runs = audit.config.engine.get(SETTING), audit.after.engine(SETTING)
    if said is None or said.value is not False or runs.value is not True or runs.origin is not Origin.ENGINE:
        return
    message = (
        f"{SETTING} is false, and V1 of vLLM {audit.after.version} chunks all the same. "
        "Write true, which is what runs, or move to 0.11.1 where a false is taken."
    )
    fix = audit.fix("Write down what runs", restores(audit, SETTING, True), enable_chunked_prefill=True)
    yield RULE.finding(audit, Severity.WARNING, SETTING, message, fix, "rlaudit ablate, factor chunked-prefill")


RULE = Rule("chunked-prefill-forced", Layer.INFERENCE_PATH, check)
