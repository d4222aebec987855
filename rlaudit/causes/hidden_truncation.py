"""A filter cuts what the sampler can draw, and neither the reported nor the trainer's logprobs contain it.

Covered: which tokens were drawn shows it (`token_tests.py`), as no difference of logprobs does. Needs the trainer's
scores of the tokens. Not covered: a filter too light for these tokens to show; the report says how light.
Source: generation_config.json defaults (NeMo-RL 3497, ART 140); `processed` off by default in V1.
"""

from functools import partial

from rlaudit.causes.attribution.cause import Cause, Stage
from rlaudit.causes.attribution.semantic_signatures import HIDDEN_TRUNCATION, semantic_signature
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_SCORES

CAUSE = Cause(
    name=HIDDEN_TRUNCATION,
    title="Hidden truncation of the support",
    layer=Layer.SEMANTIC,
    stage=Stage.MEANING,
    needs=("trainer_scores",),
    least=OF_SCORES,
    signature=partial(semantic_signature, name=HIDDEN_TRUNCATION),
    falsifier="tokens sampled with every parameter written out show the same",
    next="set generation_config=vllm and write out top_k, top_p and min_p, then sample again",
)
