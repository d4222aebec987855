"""CUDA graphs and compilation are left to vLLM, and the two versions do it differently.

What changed
    V0 captured whole decode steps and compiled nothing. V1 compiles with torch.compile and captured piecewise until
    0.10.2; from 0.11.0 on FULL_AND_PIECEWISE captures whole decode steps as well (0.11.0
    vllm/config/__init__.py:365).

Why it matters
    Inductor fuses element-wise operations and keeps intermediate values in float32, so that activations round
    elsewhere than in eager mode. Graphs pad a batch to captured sizes, which chooses other kernels.

Example
    Reported:

        from: 0.10.2
        to: 0.18.1

    Use instead:

        engine: {compilation_config: {cudagraph_mode: PIECEWISE}}

Safe to ignore when
    a comparison with `enforce_eager` on both sides shows the same mismatch.

How to confirm
    `rlaudit ablate CONFIG --from A --to B --factor cudagraphs`, and with `--factor compile` for what Inductor does.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown

MODE, SETTING = "cudagraph_mode", "compilation_config"
CONFIRM = Trial(("cudagraphs", "compile"))
WORDS = {
    "V0 decode": "runs each decode step as one CUDA graph and compiles nothing",
    "NONE": "runs no CUDA graph",
    "PIECEWISE": "runs the model in pieces, each as a CUDA graph",
    "FULL": "runs each step as one CUDA graph",
    "FULL_AND_PIECEWISE": "runs each decode step as one CUDA graph, and prefill in pieces",
}


def check(audit: Audit) -> Iterator[Finding]:
    """Report another way of capturing on the two sides."""
    before, after = audit.before.value(MODE), audit.after.value(MODE)
    if not audit.migrates or isinstance(before, Unknown) or isinstance(after, Unknown) or before == after:
        return
    message = (
        f"{engine_of(audit.before)} {_words(before)}; {engine_of(audit.after)} {_words(after)}. This changes rounding."
    )
    yield RULE.finding(audit, Severity.NOTE, SETTING, message, confirm=CONFIRM)


def _words(mode: object) -> str:
    return WORDS.get(str(mode), f"captures in mode {mode}")


RULE = Rule("cudagraph-mode-changed", Layer.INFERENCE_PATH, check)
