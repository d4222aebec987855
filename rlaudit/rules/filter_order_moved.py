"""Min-p is applied before top-p on V1, and was applied after it on V0.

What changed
    V0 keeps the top-p tokens and then drops those below min-p. V1 drops those below min-p first, so top-p is a share of
    what min-p left: with both, it keeps fewer tokens. Top-k and min-p alone keep the same in either order.
    Source: vllm/model_executor/layers/sampler.py (0.8.5:274), vllm/v1/sample/sampler.py (0.10.2:172, 0.18.1:177).

Why it matters
    The same two numbers draw from another distribution after the migration, and processed logprobs are those of the new
    one. Measured with SmolLM2 on 0.8.5 and 0.10.2: .024 nats on average for the same tokens (T=0.7, top_k=20,
    top_p=0.9, min_p=0.05). A trainer that repeats the filters in the old order is off by that on average.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        environment: {VLLM_USE_V1: "0"}
        sampling: {temperature: 0.7, top_p: 0.9, min_p: 0.05}

    Use instead:

        sampling: {min_p: 0.0}

Safe to ignore when
    The trainer applies min-p before top-p, or no trainer repeats the filters and the runs need not be compared.

How to confirm
    `rlaudit explain 0.10.2` has by how much logprobs of the same tokens moved, under `together`. The same block of
    `rlaudit ablate sampling-parameters` runs both engines under all filters and penalties.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.sampling import filters, is_greedy, listed
from rlaudit.severity import Severity


def check(audit: Audit) -> Iterator[Finding]:
    """Report min-p beside top-p if the engine changes from V0 to V1."""
    cut = {name: value for name, value in filters(audit.after).items() if name in ("top_p", "min_p")}
    if len(cut) < 2 or is_greedy(audit.after) or audit.before.is_v1 is not False or audit.after.is_v1 is not True:
        return
    replays = audit.config.facts.replays_filters is True
    severity = Severity.WARNING if replays else Severity.NOTE
    message = (
        f"{engine_of(audit.after)} applies min_p before top_p, {engine_of(audit.before)} applies min_p after top_p. "
        f"So {listed(cut)} keep other tokens"
    )
    if replays:
        message += ", and the trainer has to apply the filters in the new order"
    yield RULE.finding(audit, severity, "min_p", f"{message}.")


RULE = Rule("filter-order-moved", Layer.SEMANTIC, check)
