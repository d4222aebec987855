"""A trainer's function of logprobs returns what it returns, and its gradient is its own, whatever the recorder does.

With the torch of a trainer's environment, and a function of a trainer's own; no engine.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from recorded_run import ran as run_in
from recorder_folder import Written, ids_of, numbers, read, write_recorder

from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import trainer_spec
from rlaudit.recording.shipped import rlaudit_recorder

pytestmark = [pytest.mark.engine, pytest.mark.beside]

TRAINER = Path(rlaudit_recorder.__file__).with_name("rlaudit_trainer.py")
COMPLETIONS = TRAINER.with_name("rlaudit_completions.py")
LOSS = """
import torch

def token_logprobs(model, ids_BT, keep):
    logits_BTV = model(ids_BT)[:, -keep - 1 : -1]
    return torch.log_softmax(logits_BTV, -1).gather(-1, ids_BT[:, -keep:, None]).squeeze(-1)
"""
# Two completions; the engine, in this process, is known to have sampled the second one.
PROGRAM = """
import json, sys
import torch, loss
import rlaudit_recorder as recorder

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Embedding(20, 8), torch.nn.Linear(8, 20))
ids = torch.tensor([[1, 2, 3, 4, 5, 6], [1, 2, 7, 8, 9, 10]])
if "RLAUDIT_RECORD" in __import__("os").environ:
    recorder._process.totals["requests"] = 2
    recorder._completions.remember(recorder._process, (1, 2), (7, 8, 9, 10))
logprobs = loss.token_logprobs(model, ids, 4)
(-logprobs.mean()).backward()
with torch.no_grad():
    again = loss.token_logprobs(model, ids, keep=4)
compiled = torch.compile(loss.token_logprobs, backend="eager", fullgraph=True)(model, ids, 4)
gradients = [parameter.grad.flatten().tolist() for parameter in model.parameters()]
print(json.dumps([logprobs.tolist(), again.tolist(), compiled.tolist(), gradients]))
"""


# Another host's trainer: no front end has had a request, and no other file is there. All is kept at first.
ELSEWHERE = PROGRAM.replace('recorder._process.totals["requests"] = 2', "recorder.KEPT_BYTES = 1").replace(
    "recorder._completions.remember(recorder._process, (1, 2), (7, 8, 9, 10))", "pass"
)


def ran(
    folder: Path, sabotaged: str | None = None, recorded: bool = True, program: str = PROGRAM
) -> tuple[Any, Written]:
    """Return what the program printed, and what was recorded. sabotaged: a function of the recorder that raises."""
    trainer, place = ensure(trainer_spec("cpu"), report=print), folder / f"{sabotaged}-{recorded}-{len(program)}"
    place.mkdir()
    (place / "loss.py").write_text(LOSS)
    recorder = write_recorder(place / "recorder", trainer_functions=("loss:token_logprobs",))
    if sabotaged is not None:
        head = f"def {sabotaged}("
        (file,) = [file for file in (TRAINER, COMPLETIONS) if head in file.read_text()]
        (recorder / file.name).write_text(
            file.read_text().replace(head, f"def {sabotaged}(*_, **__): raise OSError\n\n\ndef __(")
        )
    # Without it, what is loaded at its start is there all the same.
    on = {"recorder": recorder, "out": place / "out", "paths": [place]} if recorded else {"paths": [recorder, place]}
    done = run_in(trainer, "-c", program, at=place, **on)
    return json.loads(done.stdout), read(place / "out")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trainer")


@pytest.fixture(scope="module")
def alone(folder: Path) -> Any:
    """What the program prints without a recorder."""
    return ran(folder, recorded=False)[0]


def test_the_rows_of_recorded_completions_are_written_with_their_gradient_mode(folder: Path, alone: Any) -> None:
    printed, written = ran(folder)
    assert printed == alone
    first, second = written.of_kind("trainer")  # what is compiled is passed through
    assert (first["gradients"], second["gradients"]) == (True, False)
    assert [numbers(row["logprobs"], "<f4").tolist() for row in (first, second)] == [printed[0][1], printed[1][1]]
    assert ids_of(first) == (7, 8, 9, 10) and first["rows"] == [1]
    assert written.of_kind("failed") == []


@pytest.mark.parametrize("function", ["_scored", "_scored_ids", "stretches", "_called_model", "_hook", "watch"])
def test_what_raises_there_does_not_reach_the_trainer(function: str, folder: Path, alone: Any) -> None:
    printed, written = ran(folder, sabotaged=function)
    assert printed == alone
    failed = written.of_kind("failed")
    assert written.of_kind("trainer") == [] and all("OSError" in record["error"] for record in failed)
    # Without `watch` nothing is recorded at all, which is said on stderr.
    assert failed or function == "watch"


def test_a_trainer_without_completions_beside_it_says_that_it_keeps_no_rows(folder: Path, alone: Any) -> None:
    printed, written = ran(folder, program=ELSEWHERE)
    assert printed == alone
    assert len(written.of_kind("trainer")) == 1 and written.of_kind("failed") == []
    (dropped,) = written.of_kind("dropped")
    assert dropped["what"] == "trainer logprobs"
