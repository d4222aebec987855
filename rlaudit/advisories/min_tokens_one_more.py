"""Model Runner V2 keeps end tokens away for one token longer than min_tokens says.

The position of the last token is compared with the shortest length, instead of that of the token to be sampled. A
request with min_tokens=1, which several trainers send, cannot end after its first token: such a sample has
probability zero, and the logprob of the token in its place belongs to another distribution.
"""

from rlaudit.configs.syntax.node import Unknown
from rlaudit.inspection.advisory import Advisory, Condition, Seen, Window
from rlaudit.inspection.audit import Side
from rlaudit.inspection.conditions import SECOND_RUNNER, holds_for
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer


def _asks(side: Side) -> bool | Unknown:
    return holds_for(side.sampling("min_tokens"), lambda least: isinstance(least, int) and least > 0)


ADVISORY = Advisory(
    name="min-tokens-one-more",
    layer=Layer.SEMANTIC,
    severity=Severity.WARNING,
    window=Window(
        before=Seen("0.13.0", "vllm/v1/worker/gpu/sample/logit_bias.py", "Model Runner V2 has no min_tokens"),
        first=Seen("0.14.0", "vllm/v1/worker/gpu/sample/logit_bias.py:215", "pos < min_len"),
        last=Seen("0.23.0", "vllm/v1/worker/gpu/sample/logit_bias.py:225", "pos < min_len"),
        fixed=Seen("0.24.0", "vllm/v1/worker/gpu/sample/logit_bias.py:225", "pos + 1 < min_len"),
    ),
    conditions=(SECOND_RUNNER, Condition("min_tokens is set", _asks)),
    setting="min_tokens",
    way_out="Leave min_tokens out, set VLLM_USE_V2_MODEL_RUNNER=0, or move to 0.24.0.",
    confirm="Sample one prompt at min_tokens=1 on both runners, and count answers of one token.",
)
