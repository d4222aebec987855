"""`rlaudit.record`."""

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rlaudit.api.own_errors import own_errors
from rlaudit.errors import UsageError
from rlaudit.recording.begin import Begun, begin, settings_of
from rlaudit.recording.folder import RECORDER


@contextmanager
def record(
    folder: str | os.PathLike[str],
    *,
    prompts: str = "1/16",
    limit: str = "2GB",
    logprobs: bool = False,
    trainer_function: Sequence[str] = (),
) -> Iterator[Path]:
    """Record what the vLLM engines that are built inside are asked and what they return, and give the folder.

        with rlaudit.record("today") as recording:
            llm = vllm.LLM(...)
            ...
        rlaudit.compare(recording)

    For notebooks and managed jobs, where `rlaudit record -- COMMAND` cannot stand in front. Sets what that command sets
    (PYTHONPATH and RLAUDIT_RECORD) for engines and processes that start inside, and watches this process as well, also
    if it has imported vLLM already. At the end the variables are what they were, this process's part of the recording
    is whole, and what it does from then on is not recorded. A process that was started inside and lives on is recorded
    until it ends. Nothing is printed, and a recording without an engine is no error here: `compare` says so.

    folder: is made, and must not hold a recording. prompts: "1/N", the share of prompts that is kept after the first
    64 MiB, or "all". limit: no more tokens are kept at this size of the folder, as "500MB" or "2GiB".
    logprobs: whether to have the engine compute logprobs that nothing requests (about 1 % of a step).
    trainer_function: "MODULE:NAME" of your functions that make the trainer's logprobs of logits and token ids.
    Raises rlaudit.errors.UsageError for a folder that holds a recording, another option, or inside a recording.
    Source: `rlaudit explain recorder` and `rlaudit explain recording`; vLLM loads the recorder as a plug-in of its
    group vllm.general_plugins.
    """
    with own_errors():
        if os.environ.get("RLAUDIT_RECORD"):
            raise UsageError(
                f"this process is being recorded already, into {os.environ['RLAUDIT_RECORD']}",
                "leave out one of the two recordings",
            )
        begun = begin(Path(folder), settings_of(prompts, limit, logprobs, trainer_function), os.environ)
        _check_functions(trainer_function)
    before = {name: os.environ.get(name) for name in begun.variables}
    os.environ.update(begun.variables)
    try:
        with _recorded_here(begun):
            yield begun.out
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _check_functions(functions: Sequence[str]) -> None:
    """Raise UsageError for functions that an earlier recording of this process does not watch for."""
    recorder = sys.modules.get(RECORDER.stem)
    missing = [name for name in functions if recorder and name not in recorder.trainer_functions()]
    if missing:
        raise UsageError(
            f"this process has recorded before, without the trainer's function {missing[0]}",
            "name it in the first recording of a process: restart the kernel",
        )


@contextmanager
def _recorded_here(begun: Begun) -> Iterator[None]:
    """Record this process, in which no Python starts that would load the recorder."""
    place = str(begun.recorder)
    sys.path.append(place)
    try:
        recorder = importlib.import_module(RECORDER.stem)
        recorder.register()
        recorder.begin(place)
        try:
            yield
        finally:
            recorder.stop()
    finally:
        sys.path.remove(place)
