"""Logprobs are recomputed with prompt_logprobs, which V1 always returns raw.

What changed
    V0 applies temperature, top-p, top-k and min-p to prompt logprobs as well (not the penalties). V1 takes them
    from the unprocessed logits in every release and every `logprobs_mode`; its documentation says otherwise until
    0.32.
    Source: vllm/model_executor/sampling_metadata.py (0.8.5:436), _get_prompt_logprobs_dict in
    vllm/v1/worker/gpu_model_runner.py (0.8.5:1351, 0.18.1:4740).

Why it matters
    Scoring a finished sequence by sending it as a prompt is a common way to get old or reference logprobs. At
    T=0.7 the same call returns other numbers after the migration, and `processed_logprobs` does not bring them
    back.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        engine: {logprobs_mode: processed_logprobs}
        environment: {VLLM_USE_V1: "0"}
        sampling: {temperature: 0.7, prompt_logprobs: 0}
        trainer: {divides_by_temperature: true, reads_prompt_logprobs: true}

    Use instead:

        trainer: {reads_prompt_logprobs: false}

Safe to ignore when
    The scoring requests use temperature 1 without filters, or their consumer expects logprobs at temperature 1.

How to confirm
    The report of `rlaudit ablate` has it for each engine that it ran ("prompt logprobs: without temperature").
    Or send one sequence as a prompt with prompt_logprobs at two temperatures: V1 returns the same numbers.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.sampling import filters, listed, temperature
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown


def check(audit: Audit) -> Iterator[Finding]:
    """Report prompt_logprobs of V1 where the trainer expects the sampler's."""
    if audit.config.facts.reads_prompt_logprobs is not True or audit.after.is_v1 is False:
        return
    divides, heat = audit.config.facts.divides_by_temperature, temperature(audit.after)
    cut = filters(audit.after) if audit.before.is_v1 is False else {}
    hot = isinstance(heat, Unknown) or heat != 1
    if divides is False or not (hot or cut):
        return
    at = f"a temperature of {heat:g}" if not isinstance(heat, Unknown) else f"the temperature ({heat.reason})"
    applied = " and ".join([at] * hot + [listed(cut)] * bool(cut))
    message = f"{engine_of(audit.after)} returns prompt_logprobs without {applied}, under every logprobs_mode"
    if audit.before.is_v1 is False:
        message += f"; {engine_of(audit.before)} applied it"
    certain = divides is True and hot and not isinstance(heat, Unknown) and audit.after.is_v1
    severity = Severity.ERROR if certain else Severity.WARNING
    message += ". Recompute these logprobs in the trainer, or undo the temperature where they are used."
    yield RULE.finding(audit, severity, "prompt_logprobs", message)


RULE = Rule("prompt-logprobs-recompute", Layer.SEMANTIC, check)
