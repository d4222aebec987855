"""How many requests and tokens go into one step is left to vLLM, and the two versions choose differently.

What changed
    V0: 256 requests, and as many tokens as the longest prompt. V1 chooses by memory and by how it is started. A GPU
    with 70 GiB takes 1024 requests and 8192 or 16384 tokens (A100s excepted from 0.9.0), a smaller one 256 and 2048
    or 8192. 0.32.0 adds a class from 160 GiB (0.18.1 vllm/engine/arg_utils.py:1979-2060).

Why it matters
    The composition of a batch chooses kernels and their order of summation, so logprobs move by rounding.
    Preemption begins at another load. No layer is wrong for it, but a comparison is cleaner without it.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        engine: {max_model_len: 4096}
        at_from: {environment: {VLLM_USE_V1: "0"}}

    Use instead:

        engine: {max_num_batched_tokens: 4096, max_num_seqs: 256}

Safe to ignore when
    throughput is what you migrate for: larger batches are part of it.

How to confirm
    `rlaudit ablate CONFIG --from A --to B --factor batch-size`.
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

SETTINGS = ("max_num_batched_tokens", "max_num_seqs")


def check(audit: Audit) -> Iterator[Finding]:
    """Report one note for both sizes."""
    moved = {name: default for name in SETTINGS if (default := moved_default(audit, name)) is not None}
    if not moved:
        return
    changes = ", ".join(f"{name} {moved[name].before.value} -> {moved[name].after.value}" for name in moved)
    today = " and ".join(f"{name}={default.before.value}" for name, default in moved.items())
    message = (
        f"Nothing sets {' or '.join(moved)}, so vLLM's default changes from {engine_of(audit.before)} to "
        f"{engine_of(audit.after)}: {changes}. To keep today's batches, set {today}."
    )
    confirm = Trial(("batch-size",))
    yield RULE.finding(audit, Severity.NOTE, next(iter(moved)), message, confirm=confirm)


RULE = Rule("batch-sizes-moved", Layer.INFERENCE_PATH, check, defaults=("max_num_batched_tokens", "max_num_seqs"))
