"""A trainer's rows, packed, padded, shifted or masked, are read as they were computed, and are what they would be.

With the torch of a trainer's environment; no engine. A front end's file is written by hand, the trainer's by the
recorder.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded_run import ran as run_in
from recorder_folder import write_recorder
from written_recording import WrittenProcess

from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import trainer_spec
from rlaudit.tokens.recorded.recorded_log import recorded_log

pytestmark = [pytest.mark.engine, pytest.mark.beside]

PROGRAM = Path(__file__).with_name("trainer_layouts.py")
FUNCTIONS = tuple(f"trainer_layouts:{name}" for name in ("aligned", "shifted", "last"))
LAYOUTS = ("last", "shifted", "padded", "packed", "flat", "masked", "completions alone")
# What stands at the end of every prompt, and what many completions begin with.
TEMPLATE, OPENING = [91, 92, 93], [80, 81, 82, 83]


def sequences() -> list[list[list[int]]]:
    """Return 24 prompts and completions: long and short ones, with one opening, and two that are equal."""
    random = np.random.default_rng(0)
    found = []
    for number in range(22):
        prompt = [*random.integers(1, 80, int(random.integers(1, 12))).tolist(), *TEMPLATE]
        opening = OPENING if number % 2 else []
        found.append([prompt, [*opening, *random.integers(1, 80, int(random.integers(1, 40))).tolist(), 90]])
    return [*found, [[70, *TEMPLATE], [90]], [[71, *TEMPLATE], [90]]]


def front(out: Path) -> None:
    """Write the file of a front end that sampled them."""
    process = WrittenProcess(out)
    process.sampling(0)
    for prompt, ids in sequences():
        process.sampled(prompt, ids)
    process.write()


def ran(folder: Path, how: str | None) -> tuple[list[Any], Path]:
    """Return what the program printed, and the folder of the recording."""
    trainer, out = ensure(trainer_spec("cpu"), report=print), folder / f"out-{how}"
    (folder / "completions.json").write_text(json.dumps(sequences()))
    recorder = None
    if how is not None:
        front(out)
        recorder = write_recorder(folder / f"recorder-{how}", trainer_functions=FUNCTIONS)
    words = (PROGRAM, folder / "completions.json", *([how] if how else []))
    done = run_in(trainer, *words, recorder=recorder, out=out, paths=[PROGRAM.parent])
    return [json.loads(line) for line in done.stdout.splitlines()], out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("layouts")


@pytest.fixture(scope="module")
def alone(folder: Path) -> list[Any]:
    """What is computed without a recorder."""
    return ran(folder, None)[0]


def by_hand(alone: list[Any]) -> list[np.ndarray[Any, Any]]:
    """Return the logprobs of each completion: the first columns of the rows that hold completions alone."""
    return [np.array(row[: len(ids)]) for row, (_, ids) in zip(alone[0][0], sequences(), strict=True)]


@pytest.mark.parametrize("how", ["everything", "found", "shared"])
def test_every_layout_has_the_same_logprobs(how: str, folder: Path, alone: list[Any], tmp_path: Path) -> None:
    printed, out = ran(folder, how)
    assert printed == alone
    (file,) = [file for file in out.glob("*.jsonl") if not file.name.startswith("node-100-")]
    lines = file.read_text().splitlines(keepends=True)
    records = [line for line in lines if line.startswith('{"kind":"trainer"')]
    assert [json.loads(line)["gradients"] for line in records] == [True] * len(LAYOUTS)
    assert not any(line.startswith(('{"kind":"failed"', '{"kind":"dropped"')) for line in lines)
    whole = sum(map(len, alone[0][0]))
    assert (sum(json.loads(records[0])["lengths"]) < whole) == (how != "everything")
    expected = by_hand(alone)
    for layout, record in zip(LAYOUTS, records, strict=True):
        one = tmp_path / layout
        one.mkdir()
        (one / "front.jsonl").write_text((out / "node-100-0a1b2c3d.jsonl").read_text())
        (one / file.name).write_text("".join(line for line in lines if line not in records or line is record))
        read = {sequence.sample: sequence.trainer_logprobs_T for sequence in recorded_log(one).logged()}
        # Nothing but what stands before them tells two equal completions apart; a mask hides it.
        lost = {"22", "23"} if layout in ("last", "masked", "completions alone") else set()
        assert read.keys() == {str(number) for number in range(24)} - lost, layout
        for number, logprobs_T in read.items():
            assert logprobs_T is not None, (layout, number)
            np.testing.assert_allclose(logprobs_T, expected[int(number)], atol=2e-6, err_msg=layout)
