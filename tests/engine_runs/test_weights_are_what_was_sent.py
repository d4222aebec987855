"""Weights that a real engine holds against what its updates sent: honest ones say nothing, planted faults their kind.

One engine start a release, V0 and V1, in one process; the model is tiny, and its head is its embedding.
"""

from functools import cache
from pathlib import Path

import pytest
from planted_weights import CASES
from recorded_run import ONE_PROCESS, model_in, ran
from recorder_folder import write_recorder
from tiny_updates import built

from rlaudit.recording.recording import open_recording
from rlaudit.recording.weight_readings import WeightReadings, weight_readings

pytestmark = pytest.mark.engine

RELEASES = ("0.8.5", "0.32.0")
PROGRAM = Path(__file__).with_name("planted_weights.py")
# A word of each fault that is expected; none for what is honest.
SAID = {
    "trl": None,
    "trl_asleep": None,
    "verl": None,
    "openrlhf": None,
    "pipelinerl": None,
    "areal": None,
    "sleep_without_an_update": None,
    "sent_twice": None,
    "learning_rate_zero": None,
    "loads_nothing": "stayed as they were in 1 of 1 updates",
    "one_tensor_skipped": "stayed in part as they were when other values were sent: model.norm.weight,",
    "part_of_a_packed_layer_skipped": "k_proj.weight",
    "tied_head_left_old": "had another head than the embedding it is tied to",
    "asleep_at_level_2_and_not_sent_again": "were others after sleep than before",
    "changed_behind_its_back": "changed once without a call that announced it",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weights")


@cache
def recorded(version: str, folder: Path, sabotaged: str | None = None) -> Path:
    """Run every case once. sabotaged: a function of the recorder that raises; then the first case is enough."""
    environment, place = built(version), folder / f"{version}, {sabotaged or 'cases'}"
    place.mkdir()
    recorder = write_recorder(place / "recorder")
    if sabotaged is not None:
        text, head = (recorder / "rlaudit_weights.py").read_text(), f"def {sabotaged}("
        assert head in text
        spoiled = text.replace(head, f"def {sabotaged}(*_, **__): raise OSError\n\n\ndef _other_{sabotaged}(")
        (recorder / "rlaudit_weights.py").write_text(spoiled)
    words = (PROGRAM, model_in(folder), place, *([] if sabotaged is None else ["trl"]))
    ran(environment, *words, recorder=recorder, out=place / "start", at=place, more=ONE_PROCESS)
    return place


def readings(version: str, case: str, folder: Path) -> WeightReadings:
    recording = open_recording(recorded(version, folder) / case)
    (process,) = recording.processes
    assert not process.failed and not process.dropped
    found = weight_readings(process, recording.processes, is_tied=True)
    assert found is not None
    return found


def test_every_case_has_what_is_to_be_said_of_it() -> None:
    assert CASES.keys() == SAID.keys()


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize("case", SAID)
def test_what_is_said_of_an_update(case: str, version: str, folder: Path) -> None:
    said = SAID[case]
    faults = list(readings(version, case, folder).faults())
    assert len(faults) == (said is not None), faults
    assert said is None or said in faults[0]


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize("case", ["sent_twice", "learning_rate_zero"])
def test_an_update_that_changes_nothing_is_a_fact(case: str, version: str, folder: Path) -> None:
    assert "1 update sent the same values as the update before" in next(readings(version, case, folder).sentences())


@pytest.mark.parametrize("version", RELEASES)
def test_every_tensor_of_a_plain_model_compares(version: str, folder: Path) -> None:
    found = readings(version, "trl", folder)
    assert len(found.updates) == 2 and len(found.compared) > 15
    assert not found.incomparable and not found.otherwise and not found.stayed
    assert sum(update.changed for update in found.updates) > 0
    assert sum(update.rounded_away for update in found.updates) == 0


@pytest.mark.parametrize("function", ["_elements", "_step_begins"])
def test_what_raises_where_weights_are_read_does_not_reach_the_engine(function: str, folder: Path) -> None:
    recording = open_recording(recorded("0.32.0", folder, function) / "trl")
    assert all("OSError" in error for process in recording.processes for _, error in process.failed)
    assert any(process.failed for process in recording.processes)
    assert not any(process.weights for process in recording.processes)
