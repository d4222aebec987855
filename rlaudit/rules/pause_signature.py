"""The weight update calls `pause_generation` in a way that this vLLM version does not take.

What changed
    0.12.0 brought `pause_generation(wait_for_inflight_requests, clear_cache)`. 0.16.0 added `mode` (abort, wait,
    keep) and put the HTTP routes /pause, /resume and /update_weights behind `VLLM_SERVER_DEV_MODE=1`. 0.32.0
    dropped `wait_for_inflight_requests`. Older releases have no pause at all (vllm/v1/engine/async_llm.py of each).

Why it matters
    The call raises TypeError, or the route answers 404. Callers that only log it go on with requests that were never
    paused. Half a rollout is from before the update, half from after it, and nothing reports it.

Example
    Reported:

        from: 0.28.0
        to: 0.32.0
        trainer: {weight_updates: in flight, pause_arguments: [wait_for_inflight_requests, clear_cache]}

    Use instead:

        trainer: {pause_arguments: [mode, clear_cache]}

Safe to ignore when
    your code looks at the signature before it calls.

How to confirm
    Call it once on an idle engine of the new version. `rlaudit ablate weight-update` with that version in its recipe
    prints the calls it takes.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.severity import Severity

METHOD = "pause_generation"
SWITCH = "VLLM_SERVER_DEV_MODE"


def check(audit: Audit) -> Iterator[Finding]:
    """Hold keyword arguments against the catalogued signature, native weight transfer against its routes' gate."""
    version = audit.after.version
    arguments = audit.config.facts.pause_arguments
    if isinstance(arguments, list | tuple):
        taken = audit.after.catalogue.signatures.get(METHOD)
        strange = [str(name) for name in arguments if taken is not None and name not in taken]
        if taken is None:
            message = (
                f"vLLM {version} has no {METHOD}, which came with 0.12.0. Drain requests before the update instead."
            )
            yield RULE.finding(audit, Severity.ERROR, "pause_arguments", message)
        elif strange:
            message = (
                f"{METHOD} of vLLM {version} does not take {', '.join(strange)}; it takes {', '.join(taken)}. "
                "Change the call that pauses for weight updates."
            )
            yield RULE.finding(audit, Severity.ERROR, "pause_arguments", message)
    # A plain server with native weight transfer: its updates can only come in by HTTP.
    transfers = "weight_transfer_config" in audit.config.engine and not audit.config.has_trainer
    if audit.after.catalogue.routes.get("/update_weights") != SWITCH or not transfers or audit.config.offline:
        return
    switch = audit.after.variable(SWITCH)
    if switch is None or (switch.known and str(switch.value) in ("0", "")):
        message = (
            f"weight_transfer_config is set, but /pause, /resume and /update_weights of vLLM {version} exist only with "
            f"{SWITCH}=1, which this file does not set."
        )
        yield RULE.finding(audit, Severity.WARNING, "weight_transfer_config", message)


RULE = Rule("pause-signature", Layer.INFERENCE_PATH, check, already=Severity.WARNING)
