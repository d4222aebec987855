"""An engine core that has lost the recorder's variables is recorded by what its configuration carries."""

import os
from pathlib import Path

import pytest
from recorder_folder import Record
from trainings_with_a_stand_in import Ended, Place, place, run

# `lost` is run between the resolution of the configuration, in the front end, and the start of the engine core.
PROGRAM = """
import os, sys
from vllm.engine.arg_utils import EngineArgs
from vllm.engine.llm_engine import LLMEngine

def lost():
    {lost}

if __name__ == "__main__":
    config = EngineArgs(model="a-model").create_engine_config()
    lost()
    engine = LLMEngine(config)
    print(len(engine.collective_rpc("reload_weights")[0]), vars(config).get("rlaudit_recording", {{}}).get("folder"))
    engine.shutdown()
"""
VARIABLE = "del os.environ['RLAUDIT_RECORD']"
# `spawn` hands sys.path on as well.
BOTH = VARIABLE + "; gone, _, os.environ['PYTHONPATH'] = os.environ['PYTHONPATH'].partition(':'); sys.path.remove(gone)"
ANOTHER = "os.environ['RLAUDIT_RECORD'] += '-of-another'"


def trained(here: Place, lost: str) -> tuple[Ended, list[list[Record]]]:
    """Return how the program ended, and what was recorded of processes that had a worker."""
    ended = run(recorded=here, engine="V1, spawned core", program=PROGRAM.format(lost=lost))
    assert (ended.code, ended.stdout, ended.stderr) == (0, f"4 {here.out}\n", "")
    return ended, [lines for lines in here.written().files.values() if any(one["kind"] == "worker" for one in lines)]


def test_a_process_without_the_variable_takes_folder_and_settings_from_the_configuration(tmp_path: Path) -> None:
    here = place(tmp_path)
    _, (core,) = trained(here, f"{VARIABLE}; open({str(here.folder / 'settings.json')!r}, 'w').write('{{}}')")
    (built,) = [line["effective"]["instance_id"] for line in here.written().of_kind("engine")]
    assert [line["instance"] for line in core if line["kind"] == "worker"] == [built]
    assert {line["kind"] for line in core} >= {"worker", "model", "load", "event"}
    assert not any(line["kind"] == "failed" for line in core)


def test_a_process_that_cannot_import_the_recorder_unpickles_the_configuration_all_the_same(tmp_path: Path) -> None:
    _, cores = trained(place(tmp_path), BOTH)
    assert cores == []


def test_the_variable_of_the_process_itself_goes_first(tmp_path: Path) -> None:
    here = place(tmp_path)
    _, cores = trained(here, ANOTHER)
    assert cores == []
    assert len(list(Path(f"{here.out}-of-another").iterdir())) == 1


@pytest.mark.parametrize("engine", ["V1", "V1, spawned core"])
def test_a_training_that_is_not_recorded_carries_nothing(engine: str, tmp_path: Path) -> None:
    here = place(tmp_path)
    path = os.pathsep.join([str(here.folder), str(Path(__file__).parent / "fakes")])
    ended = run(engine=engine, program=PROGRAM.format(lost="pass"), PYTHONPATH=path)
    assert (ended.code, ended.stdout, ended.stderr) == (0, "4 None\n", "")
    assert not here.out.exists()
