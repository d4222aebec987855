"""How the pause of each release is asked for, from its signature."""

import importlib.util
from types import ModuleType

import pytest

from rlaudit.engines.vllm.engine import ENGINE


@pytest.fixture(scope="module")
def steering() -> ModuleType:
    spec = importlib.util.spec_from_file_location("steerable_engine", ENGINE.update.with_name("steerable_engine.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_release_with_modes_is_asked_by_mode(steering: ModuleType) -> None:
    asked = steering.pause_arguments(("mode", "wait_for_inflight_requests", "clear_cache"), "keep", False)
    assert asked == {"mode": "keep", "clear_cache": False}


@pytest.mark.parametrize(("mode", "waits"), [("wait", True), ("abort", False)])
def test_a_release_before_modes_can_wait_or_abort(steering: ModuleType, mode: str, waits: bool) -> None:
    asked = steering.pause_arguments(("wait_for_inflight_requests", "clear_cache"), mode, True)
    assert asked == {"wait_for_inflight_requests": waits, "clear_cache": True}


def test_a_release_before_modes_cannot_keep(steering: ModuleType) -> None:
    assert steering.pause_arguments(("wait_for_inflight_requests", "clear_cache"), "keep", True) is None


def test_not_clearing_cannot_be_asked_of_a_pause_without_that_argument(steering: ModuleType) -> None:
    assert steering.pause_arguments(("mode",), "keep", False) is None
    assert steering.pause_arguments(("mode",), "keep", True) == {"mode": "keep"}
