"""The scheduler's limits contradict each other, and the engine refuses to start.

What changed
    `max_num_batched_tokens` below `max_model_len` is refused where prompts are not chunked. Until 0.11.0 V1 chunked
    even if a false was written, so `enable_chunked_prefill: false` beside a small batch started there and stops from
    0.11.1 on. A batch below `max_num_seqs` is refused in every release.
    Source: SchedulerConfig.verify_max_model_len (0.18.1 vllm/config/scheduler.py:251), _verify_args (0.8.5
    vllm/config.py:2022).

Why it matters
    The job ends with a ValueError when the engine is built.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        engine: {enable_chunked_prefill: false, max_num_batched_tokens: 4096, max_model_len: 9216}

    Use instead:

        engine: {enable_chunked_prefill: true, max_num_batched_tokens: 4096, max_model_len: 9216}

Safe to ignore when
    Never.

How to confirm
    Start the engine.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit, Side
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.severity import Severity

BATCH, LENGTH, SEQUENCES, CHUNKED = (
    "max_num_batched_tokens", "max_model_len", "max_num_seqs", "enable_chunked_prefill",
)  # fmt: skip


def check(audit: Audit) -> Iterator[Finding]:
    """Report what the release refuses; with a fix if it is a false that did not act before."""
    after = audit.after
    if _below(after, LENGTH) and after.value(CHUNKED) is False:
        message = f"{BATCH} {after.value(BATCH)} is less than {LENGTH} {after.value(LENGTH)} and prompts are not "
        message += f"chunked: vLLM {after.version} stops with a ValueError. Raise {BATCH}, or chunk prompts."
        chunked_today = audit.migrates and audit.before.value(CHUNKED) is True
        fix = audit.fix("Chunk prompts, as today", safe=True, enable_chunked_prefill=True) if chunked_today else None
        yield RULE.finding(audit, Severity.ERROR, BATCH, message, fix)
    if _below(after, SEQUENCES):
        message = f"{BATCH} {after.value(BATCH)} is less than {SEQUENCES} {after.value(SEQUENCES)}: "
        yield RULE.finding(audit, Severity.ERROR, SEQUENCES, f"{message}vLLM {after.version} stops with a ValueError.")


def _below(side: Side, name: str) -> bool:
    """Return whether a requested batch is smaller than a requested limit. vLLM's own values always fit together."""
    if not {BATCH, name} <= side.config.engine.keys():
        return False
    batch, limit = side.value(BATCH), side.value(name)
    return isinstance(batch, int) and isinstance(limit, int) and 0 < batch < limit


RULE = Rule("batch-refused", Layer.INFERENCE_PATH, check, already=Severity.WARNING)
