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


MODES, BEFORE_MODES = (
    ("mode", "wait_for_inflight_requests", "clear_cache"),
    ("wait_for_inflight_requests", "clear_cache"),
)


@pytest.mark.parametrize(
    ("parameters", "mode", "clear", "asked"),
    [
        (MODES, "keep", False, {"mode": "keep", "clear_cache": False}),
        (BEFORE_MODES, "wait", True, {"wait_for_inflight_requests": True, "clear_cache": True}),
        (BEFORE_MODES, "abort", True, {"wait_for_inflight_requests": False, "clear_cache": True}),
        (BEFORE_MODES, "keep", True, None),
        (("mode",), "keep", True, {"mode": "keep"}),
        (("mode",), "keep", False, None),
    ],
)
def test_a_pause_is_asked_for_as_the_release_can_be_asked(
    steering: ModuleType, parameters: tuple[str, ...], mode: str, clear: bool, asked: dict[str, object] | None
) -> None:
    assert steering.pause_arguments(parameters, mode, clear) == asked
