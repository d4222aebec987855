"""Prompts are prefilled in chunks after the migration and were not before, and nothing says which is wanted.

What changed
    V0 prefilled a prompt in one piece unless its context was longer than 32768 tokens (0.8.5
    vllm/engine/arg_utils.py:1501-1530). V1 chunks by default; up to 0.11.0 always, from 0.11.1 unless it is set to
    false, of which it warns (0.18.1 vllm/engine/arg_utils.py:2081).

Why it matters
    The place of the cut decides which kernels compute a prompt, and together with which other tokens. So the same
    prompt no longer rounds the same way. The effect is small and spread over all tokens: it is noise, not a bias.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        engine: {max_model_len: 4096}
        at_from: {environment: {VLLM_USE_V1: "0"}}

    Use instead:

        engine: {enable_chunked_prefill: false}

Safe to ignore when
    prompts are shorter than `max_num_batched_tokens` and few run at once.

How to confirm
    `rlaudit ablate CONFIG --from A --to B --factor chunked-prefill`.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.moved_default import switched_on
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.vllm.milestones import HONOURS_NO_CHUNKED_PREFILL

SETTING = "enable_chunked_prefill"
CONFIRM = Trial(("chunked-prefill",))


def check(audit: Audit) -> Iterator[Finding]:
    """Report what is off before, on after, and not set."""
    yield from switched_on(RULE, audit, SETTING, CONFIRM, _finding)


def _finding(audit: Audit) -> Finding:
    message = (
        f"Nothing sets {SETTING}. Chunked prefill is off with {engine_of(audit.before)} and on with "
        f"{engine_of(audit.after)}. It computes long prompts in chunks, which changes their rounding. "
    )
    fix = None
    if audit.after.version < HONOURS_NO_CHUNKED_PREFILL:
        message += "Setting it to false has no effect before vLLM 0.11.1."
    else:
        message += (
            "False keeps what runs today. But vLLM warns that the engine may then crash or produce incorrect "
            "outputs, so try it first."
        )
        fix = audit.fix("Keep chunked prefill off, as before the migration", safe=False, enable_chunked_prefill=False)
    return RULE.finding(audit, Severity.NOTE, SETTING, message, fix, CONFIRM)


RULE = Rule("chunked-prefill-on", Layer.INFERENCE_PATH, check, defaults=("enable_chunked_prefill",))
