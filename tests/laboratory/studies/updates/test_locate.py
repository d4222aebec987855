"""Finding old parts by scores alone, on a model whose parts each move every token by a pattern of their own."""

from collections.abc import Sequence

import numpy as np
import pytest

from rlaudit.arrays import Floats
from rlaudit.laboratory.studies.updates.locate import Located, locate_old, parts_in_order

NAMES = [
    "model.embed_tokens.weight",
    *(f"model.layers.{n}.w" for n in range(30)),
    "model.norm.weight",
    "lm_head.weight",
]
TOKENS = 256


def locate(old: Sequence[str], noise: float = 0.0) -> Located:
    random = np.random.default_rng(3)
    pattern = {name: random.normal(0, 0.01, TOKENS) for name in NAMES}
    pattern["lm_head.weight"] = 8 * pattern["lm_head.weight"]
    new_T = random.uniform(-4, -1, TOKENS)

    def score(taken: Sequence[str]) -> Floats:
        return np.asarray(new_T + sum((pattern[name] for name in taken), start=np.zeros(TOKENS)))

    rollout_T = score(old) + random.normal(0, noise, TOKENS)
    return locate_old(parts_in_order(NAMES), rollout_T, score, margin=1e-5)


@pytest.mark.parametrize(
    "old",
    [
        ["lm_head.weight"],
        ["model.embed_tokens.weight"],
        ["model.layers.12.w"],
        ["model.layers.0.w", "model.layers.29.w"],
        [f"model.layers.{n}.w" for n in range(5, 11)],
        ["model.layers.7.w", "model.norm.weight", "lm_head.weight"],
    ],
)
def test_old_parts_are_named_wherever_they_are(old: list[str]) -> None:
    found = locate(old)
    assert sorted(found.tensors) == sorted(old)
    assert found.fits


def test_one_old_layer_takes_some_sixteen_mixtures_and_not_one_for_every_part() -> None:
    assert locate(["model.layers.12.w"]).mixtures <= 16


def test_scores_that_no_part_explains_name_nothing() -> None:
    found = locate([], noise=0.05)
    assert not found.fits


def test_parts_stand_in_the_order_of_the_forward_pass() -> None:
    tensors = [
        "lm_head.weight",
        "model.layers.10.mlp.up_proj.weight",
        "model.layers.2.mlp.up_proj.weight",
        "model.norm.weight",
        "model.embed_tokens.weight",
        "model.layers.2.self_attn.q_proj.weight",
    ]
    assert [name for name, _ in parts_in_order(tensors)] == [
        "embedding",
        "model.layers.2",
        "model.layers.10",
        "final norm",
        "head",
    ]
