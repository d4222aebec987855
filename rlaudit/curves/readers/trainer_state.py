"""TRL and other Hugging Face trainers: `log_history` of `trainer_state.json`.

In an output folder the one of the newest checkpoint is read: it holds the whole history.
"""

from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path

from rlaudit.curves.json_lines import first_object
from rlaudit.curves.run_log import Problems, Row, RunReader
from rlaudit.errors import NotFinished
from rlaudit.files.parse_json import parse_json


def recognises(path: Path, start: bytes) -> bool:
    """Return whether it is a JSON object of that name, or with log_history; ms-swift ends its JSON lines with one."""
    start = start.removeprefix(BOM_UTF8).lstrip()
    if not start.startswith(b"{"):
        return False
    if path.name == "trainer_state.json":
        return True
    first = first_object(start.split(b"\n", 1)[0])
    return "log_history" in first if first else b'"log_history"' in start


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """Yield the entries of the history. Raises NotFinished if the file is cut off: it is one JSON document."""
    try:
        state = parse_json(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise NotFinished(f"{path} is not whole JSON: {error}", "use the one of an earlier checkpoint") from error
    history = state.get("log_history") if isinstance(state, dict) else None
    if not isinstance(history, list):
        raise NotFinished(f"{path} has no log_history")
    for number, entry in enumerate(history, start=1):
        if isinstance(entry, dict):
            yield Row(f"entry {number}", entry.get("step"), {key: entry[key] for key in entry if key != "step"})
        else:
            problems.add(f"entry {number}", f"a {type(entry).__name__} where an object was expected")


READER = RunReader(
    name="trainer-state",
    title="trainer_state.json",
    recognises=recognises,
    read=read,
    own_step="step",
    files=("trainer_state.json", "checkpoint-*/trainer_state.json"),
    whole_folder=True,
    rank=10,
)
