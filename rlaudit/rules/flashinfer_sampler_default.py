"""Top-p and top-k sampling move to or from FlashInfer's kernel.

What changed
    Which kernel draws filtered samples on a GPU if `VLLM_USE_FLASHINFER_SAMPLER` is not set. V0: PyTorch. V1 of 0.8.5:
    PyTorch with FlashInfer 0.2.3 or later. 0.9.0 to 0.11.0: FlashInfer if it is installed. 0.11.1 to 0.20.2: PyTorch
    (after reports of wrong samples, vLLM pull request 26859). From 0.21.0 on: FlashInfer (pull request 40376). It is
    never used with processed logprobs from 0.10.2 on, with per-request seeds, or without a filter.
    Source: vllm/v1/sample/ops/topk_topp_sampler.py (0.8.5:32, 0.9.0:32, 0.11.1:30, 0.21.0:32).

Why it matters
    The kernels agree in distribution up to ties at the filter's edge, and draw other tokens from the same seed.
    Runs are not reproducible across the change, and what is at the edge of the filter differs.

Example
    Reported:

        from: 0.18.1
        to: 0.21.0
        sampling: {temperature: 1.0, top_p: 0.95}

    Use instead:

        environment: {VLLM_USE_FLASHINFER_SAMPLER: "0"}

Safe to ignore when
    No filter is set, logprobs_mode is processed_logprobs, or samples need not be reproducible.

How to confirm
    Not with `rlaudit ablate`: it seeds every request, and vLLM then samples natively. `rlaudit compare` with your
    filters, on rollouts logged without seeds before and after: the support test of the semantic layer. The log of a
    release with FlashInfer says "Using FlashInfer for top-p & top-k sampling".
"""

from collections.abc import Iterator
from dataclasses import replace

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit, Side
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.sampling import filters, is_greedy, listed
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown
from rlaudit.vllm.resolve import resolve

VARIABLE = "VLLM_USE_FLASHINFER_SAMPLER"
CONFIRM = "rollouts logged without seeds, with rlaudit compare: an ablation seeds its requests"


def check(audit: Audit) -> Iterator[Finding]:
    """Report another sampling kernel after the migration."""
    cut = {name: value for name, value in filters(audit.after).items() if name != "min_p"}
    if not audit.migrates or not cut or is_greedy(audit.after) or audit.after.machine.platform != "cuda":
        return
    before, after = _kernel(audit.before), _kernel(audit.after)
    if before is None or after is None or before == after:
        return
    where = "" if audit.after.machine.flashinfer else " if FlashInfer is installed"
    message = f"In {engine_of(audit.after)}, {after} samples with {listed(cut)}; in {engine_of(audit.before)}, {before}"
    message += f" does{where}. Set {VARIABLE} to keep one of the two samplers."
    yield RULE.finding(audit, Severity.NOTE, VARIABLE, message, confirm=CONFIRM)


def _kernel(side: Side) -> str | None:
    """Return FlashInfer or PyTorch; None if it is unknown. FlashInfer counts as installed if that is not known."""
    machine = replace(side.machine, flashinfer=side.machine.flashinfer is not False)
    runs = resolve(side.config, side.catalogue, machine).value("flashinfer_sampler")
    return None if isinstance(runs, Unknown) else "FlashInfer" if runs else "PyTorch"


RULE = Rule("flashinfer-sampler-default", Layer.INFERENCE_PATH, check)
