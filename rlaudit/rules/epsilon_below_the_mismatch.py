"""A clip range is narrower than the usual mismatch between engine and trainer.

What changed
    Nothing by itself. A clip range is taken over from a recipe whose ratio is of two forward passes of the trainer, or
    tuned on an engine that lay nearer.

Why it matters
    If old logprobs are those of the rollout, the ratio that is clipped holds the mismatch of the engine. Its tokens
    usually lie sqrt(2 k3) apart: 0.0045 to 0.14 for bfloat16. A range below that clips half of the tokens or more
    before the policy has moved at all, and what is learned is decided by rounding.
    Not covered: ratios of whole sequences (GSPO), whose ranges are narrow on purpose, and old logprobs that the
    trainer computes itself. verl-omni#291 warned of 1e-5 in its recipes and took it back (#292): its log ratios are
    means over latent dimensions, and another scale.

Example
    Reported:

        to: 0.18.1
        engine: {dtype: bfloat16}
        trainer: {recomputes_old_logprobs: false, uses_rollout_logprobs: true}
        options: {actor_rollout_ref.actor.clip_ratio_low: 0.0001}

    Use instead:

        options: {actor_rollout_ref.actor.clip_ratio_low: 0.2}

Safe to ignore when
    The kernels of both sides are the same to the last bit (`bitwise` is 0), or the log ratio is a mean over more than
    one token.

How to confirm
    `rlaudit compare ROLLOUTS --ppo-epsilon LOW HIGH` on rollouts of one policy: the share of tokens that are clipped
    at lag 0.
"""

import math
from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Action, ActionKind, Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.settings.rollout_config import Setting
from rlaudit.settings.trainer_facts import Dtype
from rlaudit.severity import Severity

# The least k3 (nats) that is usual, by the coarser dtype of both sides: `rlaudit explain k3`.
LEAST_K3 = {Dtype.FLOAT32: 1e-11, Dtype.FLOAT16: 1e-5 / 24, Dtype.BFLOAT16: 1e-5}
COARSER = tuple(LEAST_K3)
# The last word of an option that is half of a clip range of tokens, as frameworks spell it.
EPSILONS = frozenset(
    {"clip_ratio_low", "clip_ratio_high", "eps_clip", "eps_clip_low", "eps_clip_high", "eps_clip_higher", "epsilon",
     "epsilon_low", "epsilon_high", "clip_lower", "clip_higher", "ratio_clip_eps", "ratio_clip_min", "ratio_clip_max"}
)  # fmt: skip
# Options that say whose ratio is clipped, and their words for one of whole sequences.
KINDS = frozenset({"loss_mode", "policy_loss", "policy_loss_type", "importance_sampling_level", "loss_type", "loss"})
OF_SEQUENCES = ("gspo", "seq")
CONFIRM = "the share of tokens that rlaudit compare ROLLOUTS --ppo-epsilon LOW HIGH finds clipped"


def check(audit: Audit) -> Iterator[Finding]:
    """Report a written epsilon of a ratio to the rollout's own logprobs."""
    config = audit.config
    rollout, trainer = Dtype.named(audit.after.value("dtype")), config.facts.dtype
    if config.facts.recomputes_old_logprobs is not False or rollout is None:
        return
    sides = [rollout, *([trainer] if isinstance(trainer, Dtype) else [])]
    coarser = max(sides, key=COARSER.index)
    usual = math.sqrt(2 * LEAST_K3[coarser])
    kinds = [str(setting.value).lower() for name, setting in config.options.items() if _last(name) in KINDS]
    if any(word in kind for kind in kinds for word in OF_SEQUENCES):
        return
    for name, setting in config.options.items():
        epsilon = _number(setting)
        if _last(name) in EPSILONS and epsilon is not None and 0 < epsilon < usual:
            message = (
                f"{name} is {epsilon:g}. With the engine in {rollout}, a token's trainer-to-rollout ratio is usually "
                f"{usual:.2g} or more off 1. Old logprobs are the rollout's, so the mismatch alone pushes tokens out "
                "of the clip range."
            )
            yield RULE.finding(
                audit, Severity.WARNING, name, message, confirm=CONFIRM, place=setting.place,
                action=Action(ActionKind.DECIDE, name),
            )  # fmt: skip


def _last(name: str) -> str:
    return name.rpartition(".")[2].lstrip("-").replace("-", "_")


def _number(setting: Setting) -> float | None:
    # YAML reads 1e-5 as a word.
    if isinstance(setting.value, bool) or not isinstance(setting.value, int | float | str):
        return None
    try:
        return float(setting.value)
    except ValueError:
        return None


RULE = Rule("epsilon-below-the-mismatch", Layer.OBJECTIVE, check)
