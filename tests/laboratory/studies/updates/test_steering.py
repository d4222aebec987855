"""How the pause of each release is asked for, from its signature."""

import importlib.util
import sys
from types import ModuleType, SimpleNamespace

import pytest

from rlaudit.engines.inside.engine import ENGINE


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


class Channel:
    class Unsupported(Exception):
        pass


def test_an_adapter_is_loaded_again_in_place_only_by_a_release_that_can(
    steering: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def before(lora_name: str, lora_int_id: int, lora_path: str) -> tuple[object, ...]:
        return lora_name, lora_int_id, lora_path

    def since(lora_name: str, lora_int_id: int, lora_path: str, load_inplace: bool = False) -> tuple[object, ...]:
        return lora_name, lora_int_id, lora_path, load_inplace

    adapter = {"name": "a", "number": 3, "path": "folder"}
    for request, in_place in ((before, None), (since, ("a", 3, "folder", True))):
        monkeypatch.setitem(sys.modules, "vllm.lora.request", SimpleNamespace(LoRARequest=request))
        assert steering.lora_request(None, Channel) is None
        assert steering.lora_request(adapter, Channel)[:3] == ("a", 3, "folder")
        if in_place is None:
            with pytest.raises(Channel.Unsupported, match="no load_inplace"):
                steering.lora_request(adapter, Channel, in_place=True)
        else:
            assert steering.lora_request(adapter, Channel, in_place=True) == in_place
