"""Sentences to the user: on stderr beside a report, on stdout as an answer that is only text."""

import contextlib
import sys

from rlaudit.files.standard_output import to_stdout
from rlaudit.secrets import mask
from rlaudit.text.printable import no_commands, printable


def say(sentence: str) -> None:
    """Print one sentence on stderr, as one of rlaudit's."""
    # Closed (print would take stdout instead) or full: the sentence has no reader.
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(no_commands(f"rlaudit: {printable(mask(sentence))}"), file=sys.stderr, flush=True)


def answer(text: str) -> None:
    """Print the answer of a command that makes no report on stdout. Raises NotFinished if it cannot be written."""
    to_stdout(f"{no_commands(printable(mask(text)))}\n")
