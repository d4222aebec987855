import inspect
import re

import pytest

from rlaudit.settings.trainer_facts import (
    Dtype,
    PauseMode,
    TrainerFacts,
    UpdateFacts,
    WeightUpdates,
    fact_of,
    fact_types,
)
from rlaudit.unknown import Unknown


def test_every_fact_has_a_comment_on_the_line_above_it() -> None:
    text = inspect.getsource(UpdateFacts) + inspect.getsource(TrainerFacts)
    assert set(re.findall(r"    # [A-Z].*\.\n    (\w+): Fact\[", text)) == set(fact_types())


@pytest.mark.parametrize(
    ("name", "value", "fact"),
    [
        ("weight_updates", "in flight", WeightUpdates.IN_FLIGHT),
        ("pause_mode", "keep", PauseMode.KEEP),
        ("dtype", "bf16", Dtype.BFLOAT16),
        ("head_dtype", "torch.float32", Dtype.FLOAT32),
        ("replays_filters", False, False),
        ("replicas", 4, 4),
        ("pause_arguments", ["mode"], ["mode"]),
        ("importance_sampling_mode", "icepop", "icepop"),
        ("replays_filters", None, None),
    ],
)
def test_a_fact_has_the_type_that_is_declared(name: str, value: object, fact: object) -> None:
    given = getattr(TrainerFacts.of({name: value}), name)
    assert given == fact and type(given) is type(fact)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("weight_updates", "in fligt", "none, between rollouts, in flight"),
        ("pause_mode", True, "keep, wait, abort"),
        ("replays_filters", "no", "bool"),
        ("replays_filters", 1, "bool"),
        ("replicas", True, "int"),
        ("pause_arguments", "mode", "list"),
    ],
)
def test_what_a_fact_cannot_be_leaves_it_open(name: str, value: object, why: str) -> None:
    fact = getattr(TrainerFacts.of({name: value}), name)
    assert isinstance(fact, Unknown) and why in fact.reason


def test_an_unknown_name_is_refused_with_the_names_that_there_are() -> None:
    with pytest.raises(ValueError, match="pause_mod is no trainer fact; known: weight_updates, "):
        fact_of("pause_mod", "keep")
