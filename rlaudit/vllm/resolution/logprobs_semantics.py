"""The distribution that the returned logprobs of sampled tokens belong to.

processed: the one the token was drawn from, after temperature, penalties and filters. raw: the model's own softmax.
before temperature: with penalties and masks, without temperature and filters (0.10.0 and 0.10.1).
Source: vllm/model_executor/layers/sampler.py (0.8.5), vllm/v1/sample/sampler.py (0.8.5, 0.10.0, 0.10.2), vLLM pull
requests 21398 and 22387.
"""

from rlaudit.unknown import Unknown
from rlaudit.vllm.milestones import LOGPROBS_MODE, PROCESSED_IS_FINAL
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, engine_unknown

_SAMPLER = "vllm/v1/sample/sampler.py"


def apply(view: Resolution) -> Resolved:  # noqa: PLR0911 - one line per decision
    """Return `processed`, `raw`, `before temperature`, or `raw logits` and `processed logits`, which are none."""
    if view.is_v1 is False:  # V0 does not read logprobs_mode, not even in 0.10, which has the argument
        return Resolved("processed", "V0 returns logprobs of the distribution that was sampled from")
    unknown = engine_unknown(view, "the meaning of logprobs") if view.is_v1 is None else None
    if not view.since(LOGPROBS_MODE):
        return unknown or Resolved("raw", "V1 had no choice before 0.10.0")
    mode = view.value("logprobs_mode")
    if isinstance(mode, Unknown):
        return Resolved(mode, "logprobs_mode decides")
    mode = str(mode).lower()
    if mode == "processed_logprobs" and view.since(PROCESSED_IS_FINAL):
        return Resolved("processed", "logprobs_mode=processed_logprobs")
    if unknown is not None:
        return unknown
    if mode == "processed_logprobs":
        return Resolved("before temperature", "processed_logprobs lacked temperature and filters until 0.10.1")
    if mode == "raw_logprobs":
        return Resolved("raw", "logprobs_mode=raw_logprobs")
    return Resolved(mode.replace("_", " "), f"logprobs_mode={mode}")


RESOLUTION = ResolutionRule(
    "logprobs_semantics",
    (
        Function(_SAMPLER, "Sampler.forward"),
        Function(_SAMPLER, "Sampler.sample"),
        Function(_SAMPLER, "Sampler.apply_logits_processors"),
        Function("vllm/model_executor/layers/sampler.py", "Sampler.forward"),
    ),
    apply,
)
