"""What the returned logprobs of sampled tokens are logprobs of.

processed: of the distribution the token was drawn from, after temperature, penalties and filters. raw: of the model's
own softmax. before temperature: with penalties and masks, without temperature and filters (0.10.0 and 0.10.1).
"""

from rlaudit.configs.syntax.node import Unknown
from rlaudit.vllm.milestones import LOGPROBS_MODE, PROCESSED_IS_FINAL
from rlaudit.vllm.resolution_rule import Function, ResolutionRule, Resolved, View, engine_unknown

_SAMPLER = "vllm/v1/sample/sampler.py"


def apply(view: View) -> Resolved:  # noqa: PLR0911 - one line per decision
    """`processed`, `raw`, `before temperature`, or `raw logits` and `processed logits`, which are no logprobs."""
    if view.is_v1 is None:
        return engine_unknown(view, "the meaning of logprobs")
    if not view.is_v1:
        return Resolved("processed", "V0 returns logprobs of the distribution that was sampled from")
    if not view.since(LOGPROBS_MODE):
        return Resolved("raw", "V1 had no choice before 0.10.0")
    mode = view.value("logprobs_mode")
    if isinstance(mode, Unknown):
        return Resolved(mode, "logprobs_mode decides")
    mode = str(mode).lower()
    if mode == "processed_logprobs":
        if not view.since(PROCESSED_IS_FINAL):
            return Resolved("before temperature", "processed_logprobs lacked temperature and filters until 0.10.1")
        return Resolved("processed", "logprobs_mode=processed_logprobs")
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
