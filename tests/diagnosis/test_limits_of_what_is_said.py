"""Decisions of the diagnosis just on either side of their limits."""

import numpy as np
import pytest

from rlaudit.diagnosis.effect import SEMANTIC_METRIC, Effect, EffectVerdict
from rlaudit.diagnosis.objective_split import UPDATE, objective_split
from rlaudit.layers import Layer
from rlaudit.tokens.token_batch import TokenBatch


@pytest.mark.parametrize(
    ("metric", "layer", "verdict", "shown"),
    [
        (SEMANTIC_METRIC, Layer.INFERENCE_PATH, EffectVerdict.FLOOR, False),
        (SEMANTIC_METRIC, Layer.INFERENCE_PATH, EffectVerdict.REMOVES, True),
        (SEMANTIC_METRIC, Layer.SEMANTIC, EffectVerdict.FLOOR, True),
        ("k3", Layer.INFERENCE_PATH, EffectVerdict.FLOOR, True),
    ],
)
def test_a_factor_of_the_path_is_shown_on_the_semantic_metric_only_if_it_moves_it(
    metric: str, layer: Layer, verdict: EffectVerdict, shown: bool
) -> None:
    effect = Effect("block", "factor", "on", layer, metric, verdict, "", 0.0, None, None, None, False)
    assert effect.worth_a_row is shown


@pytest.mark.parametrize(("advantage", "binding"), [(-1.0, 0.5), (0.0, 0.0), (1.0, 0.5)])
def test_a_clip_binds_on_neither_side_without_an_advantage(advantage: float, binding: float) -> None:
    # Half of the tokens far above the old policy, half far below.
    tokens = 2000
    far_T = np.where(np.arange(tokens) % 2, 0.5, -0.5)
    batch = TokenBatch(
        rollout_logprobs_T=np.full(tokens, -2.0),
        trainer_logprobs_T=-2.0 + far_T,
        token_id_T=np.zeros(tokens, dtype=np.int64),
        position_T=np.tile(np.arange(50), 40),
        sequence_T=np.repeat(np.arange(40), 50),
        prompt_S=np.arange(40),
        prompt_names_S=np.arange(40),
        sample_names_S=np.zeros(40, dtype=np.int64),
        token_columns={"old_logprob": np.full(tokens, -2.0), "advantage": np.full(tokens, advantage)},
    )
    found = objective_split(batch)
    assert found is not None
    assert found.factors[UPDATE].binding.value == pytest.approx(binding)  # type: ignore[union-attr]
