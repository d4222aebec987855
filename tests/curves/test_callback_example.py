"""The callback of examples/callbacks, called as a Trainer calls it."""

import importlib.util
import sys
import types
from pathlib import Path
from types import SimpleNamespace

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "callbacks" / "transformers.py"


@pytest.fixture
def callback(monkeypatch: pytest.MonkeyPatch) -> type:
    stand_in = types.ModuleType("transformers")
    stand_in.TrainerCallback = object
    monkeypatch.setitem(sys.modules, "transformers", stand_in)
    spec = importlib.util.spec_from_file_location("gate_callback", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.GateCallback


@pytest.mark.parametrize("stop", [True, False])
def test_training_is_stopped_where_that_is_asked_for(callback: type, stop: bool, capsys) -> None:
    gate = callback("kl<0.01", stop=stop)
    control = SimpleNamespace(should_training_stop=False)
    for step in range(1, 30):
        gate.on_log(None, SimpleNamespace(global_step=step), control, logs={"kl": 0.001 if step < 5 else 0.1})
        gate.on_log(None, SimpleNamespace(global_step=step), control, logs={"loss": 1.0})
    assert control.should_training_stop is stop
    assert "from step 5 on" in capsys.readouterr().out
