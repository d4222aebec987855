"""Whatever goes wrong where a trainer's function is recorded, the trainer goes on with what it computed."""

import pytest
from recorder_folder import read
from trainings_with_a_stand_in import place, run

from rlaudit.recording.closing import closing
from rlaudit.recording.recording import open_recording

FUNCTION = "verl.utils.torch_functional:logprobs_from_logits"
MODULE = """
class Odd:
    "No tensor, and it answers nothing."
    def __getattr__(self, name):
        raise RuntimeError(name)

RESULT = Odd()

def logprobs_from_logits(logits, labels, inplace_backward=True):
    if labels is None:
        raise ValueError("labels")
    return RESULT if inplace_backward else logprobs_from_logits(logits, labels)
"""
PROGRAM = """
from verl.loss import logprobs_from_logits as imported
from verl.utils import torch_functional
import training

training.main(1, 2)
print([one is torch_functional.RESULT for one in (imported(1, 2), imported(1, labels=2, inplace_backward=False))])
try:
    torch_functional.logprobs_from_logits(1, None)
except ValueError as error:
    print("raised", error)
print(imported.__name__, imported.__module__, torch_functional.logprobs_from_logits is imported)
"""


@pytest.fixture
def verl(tmp_path):
    """A framework's package in which a function stands under two names; torch is nowhere."""
    utils = tmp_path / "modules" / "verl" / "utils"
    utils.mkdir(parents=True)
    for folder in (utils, utils.parent):
        (folder / "__init__.py").touch()
    (utils / "torch_functional.py").write_text(MODULE)
    (utils.parent / "loss.py").write_text("from verl.utils.torch_functional import logprobs_from_logits\n")
    return tmp_path / "modules"


def ran(modules, recorded=None):
    return run(program=f"import sys\nsys.path.append({str(modules)!r})\n{PROGRAM}", recorded=recorded)


def test_results_errors_and_names_are_its_own(verl, tmp_path):
    recorded = place(tmp_path)
    assert ran(verl, recorded).by_the_program == ran(verl).by_the_program
    written = read(recorded.out)
    assert {"verl", FUNCTION} <= written.hooked()
    assert {record["hook"] for record in written.of_kind("failed")} == {FUNCTION}


def test_a_release_that_has_moved_its_function_is_named_at_the_end(verl, tmp_path):
    recorded = place(tmp_path)
    utils = verl / "verl" / "utils"
    (utils / "torch_functional.py").rename(utils / "moved.py")
    program = f"import sys\nsys.path.append({str(verl)!r})\nimport verl.utils.moved, training\ntraining.main(1, 2)"
    assert run(program=program, recorded=recorded).code == 0
    said = [one for one in closing(recorded.out, open_recording(recorded.out), [], []) if one.startswith("verl")]
    assert len(said) == 1 and "no function that is known" in said[0]
