"""Rollouts are sampled with a penalty that the trainer does not have.

What changed
    V0 and processed logprobs of V1 contain repetition, presence and frequency penalties; raw logprobs do not. No
    trainer replays them: they depend on all tokens before.
    Source: vllm/model_executor/layers/sampler.py (0.8.5:258), vllm/v1/sample/sampler.py (0.18.1:177).

Why it matters
    Tokens come from another distribution than the policy's. Processed logprobs make that visible as ratios away
    from 1 wherever a token repeats; raw ones hide it. Penalties often arrive unasked, from the model's
    generation_config.json.

Example
    Reported:

        to: 0.18.1
        engine: {logprobs_mode: processed_logprobs, generation_config: vllm}
        sampling: {temperature: 1.0, repetition_penalty: 1.05}
        trainer: {divides_by_temperature: true, uses_rollout_logprobs: true}

    Use instead:

        sampling: {repetition_penalty: 1.0}

Safe to ignore when
    The rollouts are used without importance ratios and off-policy samples are accepted.

How to confirm
    `rlaudit ablate quick` with your sampling parameters: compare factor `logprobs-mode` raw and processed.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import Returned, engine_of, in_the_loss, returned_logprobs
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.sampling import PENALTIES, listed, penalties, unknown_among
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown


def check(audit: Audit) -> Iterator[Finding]:
    """Report penalties in the sampler."""
    used = penalties(audit.after)
    severity = Severity.WARNING if audit.config.has_trainer else Severity.NOTE
    if used:
        message = f"{engine_of(audit.after)} samples rollouts with {listed(used)}, which no trainer applies"
        message += f", {_visible_in(audit)}. Sample without {' and '.join(used)}."
        confirm = Trial(("logprobs-mode",))
        yield RULE.finding(audit, severity, next(iter(used)), message, confirm=confirm)
    elif audit.config.has_trainer:
        names, why = unknown_among(audit.after, PENALTIES)
        if names:
            message = f"It is not known whether {', '.join(names)} change logits: {why}."
            yield RULE.finding(audit, Severity.NOTE, names[0], message)


def _visible_in(audit: Audit) -> str:
    """Return where the penalty shows: in ratios only if returned logprobs have it and the trainer compares them."""
    returned = returned_logprobs(audit.after)
    if audit.config.facts.uses_rollout_logprobs is False:
        return "and no ratio shows this, since none uses the returned logprobs"
    if isinstance(returned, Unknown):
        return "and it is not known whether the returned logprobs show this"
    if returned is Returned.RAW:
        return "and the returned logprobs hide this"
    if not in_the_loss(audit.config):
        return "which changes the logged mismatch. The loss's ratios use recomputed old logprobs and do not show this"
    return "which changes the importance ratios"


RULE = Rule("penalties-in-logprobs", Layer.SEMANTIC, check)
