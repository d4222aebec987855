"""Compiling and capturing CUDA graphs, each without the other."""

from typing import Any

import pytest

from rlaudit.engines.inside.execution import execution_args
from rlaudit.errors import UsageError
from rlaudit.laboratory.studies.arms.plan import known_factors
from rlaudit.laboratory.studies.arms.rollout import engine_settings
from rlaudit.laboratory.treatment import Treatment

NATIVE, EAGER = {"use_inductor": False}, {"backend": "eager"}
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


def test_turning_one_on_in_an_eager_engine_leaves_the_other_off() -> None:
    eager = {"enforce_eager": True, "seed": 1}
    assert execution_args("0.18.1", eager, True, None, "cuda") == {"seed": 1, "compilation_config": NO_GRAPHS}
    assert execution_args("0.18.1", eager, None, True, "cuda") == {"seed": 1, "compilation_config": EAGER}
    assert execution_args("0.18.1", eager, True, True, "cuda") == {"seed": 1}


def test_what_a_configuration_says_besides_stays() -> None:
    written = {"compilation_config": {"cudagraph_mode": "PIECEWISE", "custom_ops": ["all"]}}
    without_compiling = execution_args("0.18.1", written, False, None, "cuda")["compilation_config"]
    assert without_compiling == {"cudagraph_mode": "PIECEWISE", "custom_ops": ["all"], "backend": "eager"}
    by_default = execution_args("0.18.1", written, None, True, "cuda")["compilation_config"]
    assert by_default == {"custom_ops": ["all"]}


@pytest.mark.parametrize(
    ("version", "written", "key"), [("0.10.2", 3, "level"), ("0.18.1", 3, "mode"), ("0.18.1", '{"mode": 3}', "mode")]
)
def test_a_configuration_as_a_level_or_as_json_is_understood(version: str, written: Any, key: str) -> None:
    made = execution_args(version, {"compilation_config": written}, None, False, "cuda")["compilation_config"]
    assert made == {key: 3, **NO_GRAPHS}


def test_a_configuration_that_cannot_be_changed_in_part_is_refused() -> None:
    with pytest.raises(UsageError, match="neither a mapping nor a level"):
        execution_args("0.18.1", {"compilation_config": "fast"}, False, None, "cuda")


def test_nothing_asked_is_nothing_changed() -> None:
    written = {"compilation_config": "fast", "enforce_eager": True}
    assert execution_args("0.18.1", written, None, None, "cuda") == written


def test_on_a_cpu_eager_is_without_compiling_and_there_are_no_graphs_to_turn_off() -> None:
    assert execution_args("0.18.1", {"enforce_eager": True}, True, None, "cpu") == {"enforce_eager": False}
    assert execution_args("0.18.1", {}, False, None, "cpu") == {"enforce_eager": True}
    assert execution_args("0.18.1", {}, None, False, "cpu") == {"enforce_eager": False}
