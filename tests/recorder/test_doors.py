"""The two doors to the recorder itself, with a package in vLLM's place: each alone records, and both record once."""

import sys

import pytest
from recorded_commands import environment, record

from rlaudit.recording.folder import RECORDER
from rlaudit.recording.recording import open_recording

ARG_UTILS = """
import dataclasses

@dataclasses.dataclass
class EngineArgs:
    model: str = "model"
    seed: int = 0

    def create_engine_config(self):
        return {"seed": self.seed}
"""
BUILDS_AN_ENGINE = "from vllm.engine.arg_utils import EngineArgs; print(EngineArgs(seed=7).create_engine_config())"
LOADS_PLUG_INS = """
from importlib.metadata import entry_points
for found in entry_points(group="vllm.general_plugins"):
    found.load()()
"""


@pytest.fixture
def place(tmp_path):
    environment(tmp_path)
    modules = tmp_path / "modules"
    (modules / "vllm.py").unlink()
    (modules / "vllm" / "engine").mkdir(parents=True)
    (modules / "vllm" / "__init__.py").write_text("__version__ = '0.0'\n")
    (modules / "vllm" / "engine" / "__init__.py").write_text("")
    (modules / "vllm" / "engine" / "arg_utils.py").write_text(ARG_UTILS)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "code", "variables"),
    [
        ([], BUILDS_AN_ENGINE, {"VLLM_PLUGINS": ""}),
        (["-S"], LOADS_PLUG_INS + BUILDS_AN_ENGINE, {}),
        ([], LOADS_PLUG_INS + BUILDS_AN_ENGINE, {}),
    ],
    ids=["import hook", "plug-in", "both"],
)
def test_an_engine_is_recorded_once(options, code, variables, place):
    words = [sys.executable, *options, "-c", code]
    ended = record(place, "--into", "out", "--", *words, recorder=RECORDER.read_text(), **variables)
    assert (ended.returncode, ended.stdout) == (0, "{'seed': 7}\n")
    (process,) = open_recording(place / "out").processes
    assert [(engine.written, engine.effective) for engine in process.engines] == [({"seed": 7}, {"seed": 7})]
