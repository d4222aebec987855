"""No single row turns a verdict: a match never becomes a mismatch by it, nor a mismatch a match."""

from dataclasses import replace

import numpy as np
import pytest
from compare_tokens import compare
from honest_tables import VOCABULARY, Shape, Size, honest_table
from scipy.special import log_softmax

from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.layers import Layer, Verdict
from rlaudit.meaning.candidates import Semantics

PLAIN = Semantics()
FAST = CompareSettings(replicates=300)
SIZE = Size(40, 2, 40)
OPPOSITES = {(Verdict.MATCH, Verdict.MISMATCH), (Verdict.MISMATCH, Verdict.MATCH)}


def honest(seed, strength):
    return honest_table(seed, SIZE, Shape.NOISE, 1.0), PLAIN


def hidden_temperature(seed, strength):
    """Drawn from a sharper distribution than both sides state."""
    table, _ = honest(seed, 0.0)
    rng = np.random.default_rng(seed)
    logits_TV = 2.0 * rng.standard_normal((table.tokens, VOCABULARY))
    logprobs_TV = log_softmax(logits_TV, axis=1)
    token_T = (logits_TV * (1.0 + 0.2 * strength) + rng.gumbel(size=logits_TV.shape)).argmax(axis=1)
    logprobs_T = logprobs_TV[np.arange(table.tokens), token_T]
    entropy_T = -(np.exp(logprobs_TV) * logprobs_TV).sum(axis=1)
    columns = {**table.token_columns, "trainer_entropy": entropy_T}
    near_T = np.minimum(logprobs_T + 1e-3 * rng.standard_normal(table.tokens), 0.0)
    return replace(
        table,
        rollout_logprobs_T=logprobs_T,
        trainer_logprobs_T=near_T,
        token_id_T=token_T,
        token_columns=columns,
        rollout_top_ids_TK=None,
        rollout_top_logprobs_TK=None,
        trainer_top_ids_TK=None,
        trainer_top_logprobs_TK=None,
    ), PLAIN


def another_prompt(seed, strength):
    """Off at the first tokens of all completions."""
    table, _ = honest(seed, 0.0)
    room_T = -np.expm1(table.rollout_logprobs_T)
    noise_T = np.random.default_rng(seed).standard_normal(table.tokens)
    size_T = 0.5 * strength * np.exp(-table.position_T / 4.0) * room_T
    apart_T = size_T * noise_T - np.square(size_T) / 2.0
    return replace(table, trainer_logprobs_T=np.minimum(table.trainer_logprobs_T + apart_T, 0.0)), PLAIN


def missing_mask(seed, strength):
    """Lower by the log of a kept mass."""
    table, _ = honest(seed, 0.0)
    kept_T = 1.0 - 0.05 * strength * np.random.default_rng(seed).random(table.tokens)
    return replace(table, trainer_logprobs_T=table.trainer_logprobs_T + np.log(kept_T)), Semantics(top_p=0.8)


def shifted(seed, strength):
    """Lower by one number."""
    table, _ = honest(seed, 0.0)
    return replace(table, trainer_logprobs_T=table.rollout_logprobs_T - 0.02 * strength), PLAIN


def penalised(seed, strength):
    """Seen tokens higher, others lower."""
    table, _ = honest(seed, 0.0)
    ids_T = np.random.default_rng(seed).integers(0, 30, table.tokens)
    pairs = np.unique(np.stack([table.sequence_T, ids_T]), axis=1, return_index=True)[1]
    seen_T = np.ones(table.tokens, dtype=bool)
    seen_T[pairs] = False
    room_T = -np.expm1(table.rollout_logprobs_T)
    shift_T = np.where(seen_T, 0.05, -0.05) * strength * room_T
    return replace(
        table, token_id_T=ids_T, trainer_logprobs_T=np.minimum(table.trainer_logprobs_T + shift_T, 0.0)
    ), PLAIN


WORLDS = (honest, hidden_temperature, another_prompt, missing_mask, shifted, penalised)
LOGPROBS = (0.0, -1e-12, -0.7, -30.0, -80.0, -700.0, -1e6)


def one_row_replaced(table, rng):
    """The table with one row that holds something else; sometimes with a whole sequence 50 nats off."""
    row = int(rng.integers(table.tokens))
    own = rng.integers(table.tokens) if rng.random() < 0.5 else row
    rollout_T, trainer_T = table.rollout_logprobs_T.copy(), table.trainer_logprobs_T.copy()
    entropy_T = table.token_columns["trainer_entropy"].copy()
    kind = rng.integers(4)
    if kind == 0:
        of_sequence = table.sequence_T == table.sequence_T[own]
        trainer_T[of_sequence] -= 50.0 * rng.random()
    if kind in {1, 3}:
        trainer_T[row] = rng.choice(LOGPROBS)
        rollout_T[row] = rng.choice(LOGPROBS)
    if kind in {2, 3}:
        entropy_T[row] = rng.choice([0.0, np.log(VOCABULARY), 12.0])
    columns = {**table.token_columns, "trainer_entropy": entropy_T}
    return replace(table, rollout_logprobs_T=rollout_T, trainer_logprobs_T=trainer_T, token_columns=columns)


def verdicts_of(table, sampling):
    return {one.layer: one.verdict for one in compare([table], sampling, PLAIN, FAST).layers}


def turned(world, seed, rows):
    """Layers whose verdict one row turned into its opposite."""
    rng = np.random.default_rng(seed)
    table, sampling = world(seed, rng.uniform(0.0, 3.0))
    before = verdicts_of(table, sampling)
    found = []
    for _ in range(rows):
        after = verdicts_of(one_row_replaced(table, rng), sampling)
        found += [layer.value for layer in Layer if (before[layer], after[layer]) in OPPOSITES]
    return found


@pytest.mark.parametrize("world", WORLDS)
def test_no_row_turns_a_match_into_a_mismatch_or_back(world):
    assert [one for seed in range(3) for one in turned(world, seed, rows=4)] == []
