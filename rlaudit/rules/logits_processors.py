"""The sampler changes logits in a way that the trainer does not know.

What changed
    Bias, allowed or forbidden tokens, a minimum length and custom processors act before sampling. V0 and processed
    logprobs contain them, raw logprobs of V1 do not. A structured-output mask is in all of them, raw ones
    included.
    Source: vllm/v1/sample/sampler.py (0.18.1:286), vllm/v1/worker/gpu_model_runner.py (0.8.5:1114, 0.18.1:3909).

Why it matters
    Tokens come from a distribution that the trainer never computes. With processed logprobs ratios show it: a forced
    token has logprob 0 against the trainer's own logprob of it. With raw logprobs nothing shows.

Example
    Reported:

        to: 0.18.1
        sampling: {temperature: 1.0, logit_bias: {13: -100}}
        trainer: {divides_by_temperature: true, uses_rollout_logprobs: true}

    Use instead:

        sampling: {logit_bias: null}

Safe to ignore when
    The positions concerned are masked out of the loss.

How to confirm
    `rlaudit ablate quick` with your sampling parameters: factor `logprobs-mode`, raw against processed.
"""

from collections.abc import Iterator
from typing import Any

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import Returned, engine_of, returned_logprobs
from rlaudit.rules.audit.rule import Rule
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown

PARAMETERS = ("logit_bias", "allowed_token_ids", "bad_words", "logits_processors")
STRUCTURED = ("structured_outputs", "guided_decoding")
NOTHING: tuple[Any, ...] = (None, 0, "", [], {}, ())


def check(audit: Audit) -> Iterator[Finding]:
    """Report anything beside temperature, filters and penalties that moves logits."""
    if not audit.config.has_trainer:
        return
    raw = returned_logprobs(audit.after) is Returned.RAW
    for name in PARAMETERS:
        if _is_set(audit.after.sampling(name)):
            seen = f"leaves {name} out of the returned logprobs" if raw else f"includes {name} in the returned logprobs"
            message = (
                f"Rollouts are sampled with {name}, which the trainer does not apply. {engine_of(audit.after)} {seen}."
            )
            yield RULE.finding(audit, Severity.WARNING, name, message)
    if _is_set(audit.after.value("logits_processors")):
        message = f"{engine_of(audit.after)} loads custom logits processors, which the trainer does not apply."
        yield RULE.finding(audit, Severity.WARNING, "logits_processors", message)
    for name in STRUCTURED:
        if _is_set(audit.after.sampling(name)):
            message = f"{name} masks tokens, in raw logprobs as well, but the trainer computes the whole softmax."
            yield RULE.finding(audit, Severity.WARNING, name, message)
    minimum = audit.after.sampling("min_tokens")
    if _is_set(minimum):
        message = f"min_tokens={minimum} forbids the end token at the start; the trainer still gives it probability."
        yield RULE.finding(audit, Severity.NOTE, "min_tokens", message)


def _is_set(value: Any) -> bool:
    return not isinstance(value, Unknown) and value not in NOTHING


RULE = Rule("logits-processors", Layer.SEMANTIC, check)
