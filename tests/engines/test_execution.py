"""Compiling and capturing CUDA graphs, each without the other."""

from typing import Any

import pytest

from rlaudit.engines.inside.execution import execution_args
from rlaudit.errors import UsageError
from rlaudit.laboratory.studies.arms.plan import known_factors
from rlaudit.laboratory.studies.arms.rollout import engine_settings
from rlaudit.laboratory.treatment import Treatment

NATIVE, EAGER = {"use_inductor": False}, {"backend": "eager"}
PIECEWISE: dict[str, Any] = {"compilation_config": {"cudagraph_mode": "PIECEWISE", "custom_ops": ["all"]}}
NO_GRAPHS, NO_GRAPHS_BEFORE = {"cudagraph_mode": "NONE"}, {"use_cudagraph": False}


def config(version: str, **levels: str) -> Any:
    """compilation_config of a treatment on CUDA."""
    treatment = Treatment(version)
    for name, level in levels.items():
        treatment = known_factors()[name].apply(treatment, level)
    return engine_settings(treatment, "cuda").engine_args.get("compilation_config")


@pytest.mark.parametrize(
    ("version", "without_inductor", "without_graphs"),
    [
        ("0.8.5", NATIVE, NO_GRAPHS_BEFORE),
        ("0.10.0", NATIVE, NO_GRAPHS_BEFORE),
        ("0.10.1", NATIVE, NO_GRAPHS),
        ("0.11.0", NATIVE, NO_GRAPHS),
        ("0.12.0", EAGER, NO_GRAPHS),
        ("0.18.1", EAGER, NO_GRAPHS),
        ("0.32.0", EAGER, NO_GRAPHS),
    ],
)
def test_each_release_is_told_in_its_own_words_and_only_of_one_of_the_two(
    version: str, without_inductor: dict[str, Any], without_graphs: dict[str, Any]
) -> None:
    assert config(version, compile="off") == without_inductor
    assert config(version, cudagraphs="off") == without_graphs
    assert config(version, compile="off", cudagraphs="off") == {**without_inductor, **without_graphs}
    assert config(version, compile="on") is config(version, cudagraphs="on") is None


@pytest.mark.parametrize(
    ("version", "written", "compiles", "captures", "device", "made"),
    [
        # Turning one on in an eager engine leaves the other off.
        (
            "0.18.1",
            {"enforce_eager": True, "seed": 1},
            True,
            None,
            "cuda",
            {"seed": 1, "compilation_config": NO_GRAPHS},
        ),
        ("0.18.1", {"enforce_eager": True, "seed": 1}, None, True, "cuda", {"seed": 1, "compilation_config": EAGER}),
        ("0.18.1", {"enforce_eager": True, "seed": 1}, True, True, "cuda", {"seed": 1}),
        # What a configuration says besides stays.
        (
            "0.18.1",
            PIECEWISE,
            False,
            None,
            "cuda",
            {"compilation_config": {**PIECEWISE["compilation_config"], **EAGER}},
        ),
        ("0.18.1", PIECEWISE, None, True, "cuda", {"compilation_config": {"custom_ops": ["all"]}}),
        # A configuration as a level or as JSON is understood.
        ("0.10.2", {"compilation_config": 3}, None, False, "cuda", {"compilation_config": {"level": 3, **NO_GRAPHS}}),
        ("0.18.1", {"compilation_config": 3}, None, False, "cuda", {"compilation_config": {"mode": 3, **NO_GRAPHS}}),
        (
            "0.18.1",
            {"compilation_config": '{"mode": 3}'},
            None,
            False,
            "cuda",
            {"compilation_config": {"mode": 3, **NO_GRAPHS}},
        ),
        # Nothing asked is nothing changed.
        ("0.18.1", {"compilation_config": "fast"}, None, None, "cuda", {"compilation_config": "fast"}),
        # On a CPU eager is without compiling, and there are no graphs to turn off.
        ("0.18.1", {"enforce_eager": True}, True, None, "cpu", {"enforce_eager": False}),
        ("0.18.1", {}, False, None, "cpu", {"enforce_eager": True}),
        ("0.18.1", {}, None, False, "cpu", {"enforce_eager": False}),
    ],
)
def test_what_is_asked_changes_that_alone(
    version: str, written: Any, compiles: bool | None, captures: bool | None, device: str, made: Any
) -> None:
    assert execution_args(version, written, compiles, captures, device) == made


def test_a_configuration_that_cannot_be_changed_in_part_is_refused() -> None:
    with pytest.raises(UsageError, match="neither a mapping nor a level"):
        execution_args("0.18.1", {"compilation_config": "fast"}, False, None, "cuda")
