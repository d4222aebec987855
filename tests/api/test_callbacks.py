"""The callback of rlaudit.callbacks, called as a Trainer calls it, and the example that hands it to one."""

import importlib
import logging
import runpy
import sys
import types
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "callbacks" / "transformers.py"


@pytest.fixture
def callbacks(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    stand_in = types.ModuleType("transformers")
    stand_in.TrainerCallback = object
    monkeypatch.setitem(sys.modules, "transformers", stand_in)
    monkeypatch.delitem(sys.modules, "rlaudit.callbacks", raising=False)
    return importlib.import_module("rlaudit.callbacks")


@pytest.mark.parametrize("stop", [True, False])
def test_an_alarm_is_a_warning_and_stops_the_training_if_it_may(
    callbacks: types.ModuleType, stop: bool, caplog: pytest.LogCaptureFixture
) -> None:
    gate = callbacks.GateCallback("kl<0.01", stop=stop)
    control = SimpleNamespace(should_training_stop=False)
    for step in range(1, 30):
        gate.on_log(None, SimpleNamespace(global_step=step), control, logs={"kl": 0.001 if step < 5 else 0.1})
        gate.on_log(None, SimpleNamespace(global_step=step), control, logs={"loss": 1.0})
    assert control.should_training_stop is stop
    assert [(record.name, record.levelno) for record in caplog.records] == [("rlaudit", logging.WARNING)]
    assert "from step 5 on" in caplog.text


def test_the_example_hands_it_to_the_trainer(callbacks: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    trl = types.ModuleType("trl")
    trl.GRPOConfig = lambda **arguments: arguments
    trl.GRPOTrainer = lambda **arguments: given.update(arguments) or SimpleNamespace(train=lambda: None)
    datasets = types.ModuleType("datasets")
    datasets.Dataset = SimpleNamespace(from_list=list)
    for module in (trl, datasets):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    runpy.run_path(str(EXAMPLE))
    (callback,) = given["callbacks"]
    assert isinstance(callback, callbacks.GateCallback)
    assert callback.watched[0].key == "sampling/sampling_logp_difference/mean"
