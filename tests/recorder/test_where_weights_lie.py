"""What a rank holds of a tensor that is sent: the same numbers are found in both, or it is said not to compare."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rlaudit.recording import shipped

sys.path.append(str(Path(shipped.__path__[0])))

import rlaudit_weights

HIDDEN, HEAD, INNER, VOCABULARY, EXPERTS = 16, 4, 24, 50, 3
PACKED = {"qkv_proj": ["q_proj", "k_proj", "v_proj"], "gate_up_proj": ["gate_proj", "up_proj"]}


def sent() -> dict[str, Any]:
    """A checkpoint whose numbers are all different."""
    shapes = {
        "embed_tokens.weight": (VOCABULARY, HIDDEN),
        "layers.0.attn.q_proj.weight": (8 * HEAD, HIDDEN),
        "layers.0.attn.k_proj.weight": (2 * HEAD, HIDDEN),
        "layers.0.attn.v_proj.weight": (2 * HEAD, HIDDEN),
        "layers.0.attn.q_proj.bias": (8 * HEAD,),
        "layers.0.attn.k_proj.bias": (2 * HEAD,),
        "layers.0.attn.v_proj.bias": (2 * HEAD,),
        "layers.0.attn.o_proj.weight": (HIDDEN, 8 * HEAD),
        "layers.0.mlp.gate_proj.weight": (INNER, HIDDEN),
        "layers.0.mlp.up_proj.weight": (INNER, HIDDEN),
        "layers.0.mlp.down_proj.weight": (HIDDEN, INNER),
        "norm.weight": (HIDDEN,),
        "scale": (),
    }
    for expert in range(EXPERTS):
        for part, shape in (("w1", (INNER, HIDDEN)), ("w3", (INNER, HIDDEN)), ("w2", (HIDDEN, INNER))):
            shapes[f"layers.1.experts.{expert}.{part}.weight"] = shape
    first, found = 0, {}
    for name, shape in shapes.items():
        count = int(np.prod(shape))
        found[name] = np.arange(first, first + count, dtype=np.float64).reshape(shape)
        first += count
    return found


def loaded(weights: dict[str, Any], rank: int, ranks: int) -> dict[str, Any]:
    """What vLLM's layers make of it: columns parallel by rows, rows parallel by columns, vocabularies padded to 64."""

    def rows(name: str) -> Any:
        return np.split(weights[name], ranks)[rank] if weights[name].shape[0] % ranks == 0 else weights[name]

    padded = np.zeros((64, HIDDEN))
    padded[:VOCABULARY] = weights["embed_tokens.weight"]
    held = {"embed_tokens.weight": np.split(padded, ranks)[rank], "norm.weight": weights["norm.weight"]}
    for kind in ("weight", "bias"):
        parts = [f"layers.0.attn.{part}.{kind}" for part in PACKED["qkv_proj"]]
        held[f"layers.0.attn.qkv_proj.{kind}"] = np.concatenate([rows(part) for part in parts])
    parts = [f"layers.0.mlp.{part}.weight" for part in PACKED["gate_up_proj"]]
    held["layers.0.mlp.gate_up_proj.weight"] = np.concatenate([rows(part) for part in parts])
    for name in ("layers.0.attn.o_proj.weight", "layers.0.mlp.down_proj.weight"):
        held[name] = np.split(weights[name], ranks, axis=1)[rank]
    if ranks == 1:
        both = [
            np.concatenate([weights[f"layers.1.experts.{expert}.{part}.weight"] for part in ("w1", "w3")])
            for expert in range(EXPERTS)
        ]
        held["layers.1.experts.w13_weight"] = np.stack(both)
        held["layers.1.experts.w2_weight"] = np.stack(
            [weights[f"layers.1.experts.{expert}.w2.weight"] for expert in range(EXPERTS)]
        )
    return {**held, "scale": weights["scale"]}


def stacked(name: str) -> str:
    """As the mapper of 0.32.0 names a part of a packed layer."""
    for layer, parts in PACKED.items():
        for part in parts:
            name = name.replace(f".{part}.", f".{layer}.")
    return name


def served_with(weights: dict[str, Any], held: dict[str, Any], rank: int, ranks: int, mapper: Any = None) -> Any:
    model: Any = type("Model", (), {"packed_modules_mapping": PACKED, "hf_to_vllm_mapper": mapper})()
    served = rlaudit_weights._Served(model, rank, ranks)
    served.shapes = {name: one.shape for name, one in held.items()}
    served.sent_shapes = {name: one.shape for name, one in weights.items()}
    return served


def compared(
    weights: dict[str, Any], held: dict[str, Any], rank: int, ranks: int, mapper: Any = None
) -> dict[str, tuple[Any, Any]]:
    """The elements of both sides, of the tensors that compare."""
    served, found = served_with(weights, held, rank, ranks, mapper), {}
    for name, one in weights.items():
        part = rlaudit_weights._part(served, name, one.shape)
        if part is not None:
            share, starts = rlaudit_weights._share(served, name, one.shape)
            ours = one.ravel()[rlaudit_weights.flat_places(one.shape, share, starts)]
            where, own, first = part
            found[name] = ours, held[where].ravel()[rlaudit_weights.flat_places(held[where].shape, own, first)]
    return found


@pytest.mark.parametrize("mapper", [None, SimpleNamespace(_map_name=stacked)], ids=["names", "stacked names"])
@pytest.mark.parametrize(("rank", "ranks"), [(0, 1), (0, 2), (1, 2)])
def test_elements_of_what_is_sent_are_those_that_are_held(rank: int, ranks: int, mapper: Any) -> None:
    weights = sent()
    found = compared(weights, loaded(weights, rank, ranks), rank, ranks, mapper)
    experts = {name for name in weights if "experts" in name}
    assert found.keys() == weights.keys() - (experts if ranks > 1 else set())
    for name, (ours, theirs) in found.items():
        assert ours.tolist() == theirs.tolist(), name
        assert len(set(ours.tolist())) > 1 or name == "scale"


def test_keys_that_several_ranks_hold_are_not_compared() -> None:
    # Of four ranks two hold the same head of the keys.
    weights = sent()
    held = {"layers.0.attn.qkv_proj.weight": np.zeros((2 * HEAD + 2 * HEAD, HIDDEN))}
    assert compared(weights, held, 0, 4) == {}


@pytest.mark.parametrize("held", [(INNER, HIDDEN + 1), (HIDDEN, INNER), (INNER, HIDDEN, 1), (INNER - 1, HIDDEN)])
def test_another_shape_is_not_compared(held: tuple[int, ...]) -> None:
    weights = {"a.weight": np.zeros((INNER, HIDDEN))}
    for ranks in (1, 2):
        assert compared(weights, {"a.weight": np.zeros(held)}, 0, ranks) == {}


def test_a_part_before_it_that_was_never_sent_leaves_its_place_unknown() -> None:
    weights = sent()
    del weights["layers.0.attn.k_proj.weight"]
    found = compared(weights, loaded(sent(), 0, 1), 0, 1)
    assert "layers.0.attn.q_proj.weight" in found and "layers.0.attn.v_proj.weight" not in found


def test_names_that_the_model_gives_to_what_is_sent_are_its_own() -> None:
    weights = {"model.norm.weight": np.arange(16.0)}
    model: Any = type("Model", (), {})()
    model.hf_to_vllm_mapper = SimpleNamespace(_map_name=lambda name: name.replace("model.", "language_model."))
    served = rlaudit_weights._Served(model, 0, 1)
    served.shapes = {"language_model.norm.weight": (16,)}
    assert rlaudit_weights._part(served, "model.norm.weight", weights["model.norm.weight"].shape)[0] in served.shapes
