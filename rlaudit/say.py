"""Sentences to the user: stderr for what accompanies a report, stdout for an answer that is only text."""

import sys

from rlaudit.printable import no_commands, printable


def say(sentence: str) -> None:
    """One sentence on stderr, with whose it is."""
    print(no_commands(f"rlaudit: {printable(sentence)}"), file=sys.stderr, flush=True)


def answer(text: str) -> None:
    """The answer of a command that makes no report, on stdout."""
    print(no_commands(printable(text)), flush=True)
