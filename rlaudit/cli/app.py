"""The command line: exit codes, and the one place where errors become them.

0 nothing at or above --fail-on; 1 findings or a mismatch; 2 bad command line or configuration; 3 audit not finished;
70 a bug in rlaudit; 130 interrupted, finished cells kept.
"""

import gc
import os
import sys
from contextlib import suppress
from typing import Any

import rlaudit
from rlaudit.cli.memory_limit import out_of_memory, respect_memory_limit
from rlaudit.cli.removed_options import no_option, refuse_removed
from rlaudit.errors import NotFinished, UsageError
from rlaudit.files.standard_output import everything_written, take_every_character
from rlaudit.files.unusable_place import error_of_a_file
from rlaudit.secrets import learn, learn_text, mask
from rlaudit.text.command_line import remember
from rlaudit.text.say import say

# After so many new objects of an inspection Python looks for cycles among the youngest.
_ALLOCATIONS = 50_000
BUG = 70
INTERRUPTED = 130
# Set by the shell that wants a completion.
COMPLETION = "_RLAUDIT_COMPLETE"


def main() -> None:
    """Run the command line and exit with its code.

    Python's own code for an error that escapes is 1, which is a verdict here: an error while another is shown, or while
    the last is written, ends with 70.
    """
    code = BUG
    try:
        take_every_character()
        respect_memory_limit()
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException:
        with suppress(BaseException):
            code = _bug()
    sys.exit(code if everything_written() or code else NotFinished.exit_code)


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    learn(dict(os.environ))
    learn_text(" ".join(arguments))
    remember(arguments)
    try:
        outcome = _outcome(arguments)
    except KeyboardInterrupt:
        return _interrupted(arguments)
    except SystemExit as leaving:
        # Typer ends so after completion. Any other exit (Ray exits at SIGTERM) must not pass for a verdict.
        completed = COMPLETION in os.environ and not leaving.code
        return 0 if completed else _interrupted(arguments)
    except Exception as error:
        return _failed(error)
    # Typer returns this code after Ctrl-C and prints nothing. `record` returns the code of its command.
    if outcome == INTERRUPTED and arguments[:1] != ["record"]:
        return _interrupted(arguments)
    return outcome if isinstance(outcome, int) else 0


def _failed(error: Exception) -> int:
    """Say what went wrong and return the exit code."""
    ours = out_of_memory(error) or error_of_a_file(error)
    if ours is not None:
        say(str(ours))
        return ours.exit_code
    if hasattr(error, "show") and hasattr(error, "exit_code"):  # typer's errors of a command line
        _say_of_the_command_line(error)
        return UsageError.exit_code
    return _bug()


def _say_of_the_command_line(error: Any) -> None:
    """Print an error of typer's as ours are."""
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", "rlaudit")
    if context is not None and hasattr(error, "possibilities"):
        options = [option for known in context.command.params for option in known.opts]
        say(str(no_option(error.option_name, options, command)))
        return
    try:
        message = str(error.format_message())
    except Exception:  # as with typer 0.15.0 and click 8.5
        message = str(error)
    if "\n" in message:  # the help, of a command that got no words
        print(message, file=sys.stderr)
    else:
        plain = message.replace("Value error, ", "").rstrip(".")
        say(str(UsageError(f"{plain[:1].lower()}{plain[1:]}", f"see: {command} --help")))


def _bug() -> int:
    import traceback

    if sys.stderr is not None:
        print(mask(traceback.format_exc()), file=sys.stderr)
    say(f"this is a bug in rlaudit {rlaudit.__version__}; please report the lines above")
    return BUG


def _outcome(arguments: list[str]) -> object:
    refuse_removed(arguments)
    if arguments[:1] == ["inspect"]:
        return _inspect(arguments[1:])
    if arguments[:1] == ["explain"] and len(arguments) == 2 and not arguments[1].startswith("-"):
        # One name needs no parser, and to import typer takes longer than to print a page.
        from rlaudit.cli.pages import print_page

        return print_page(arguments[1])
    from rlaudit.cli.commands import run_command

    return run_command(arguments)


def _inspect(words: list[str]) -> int:
    # Modules, and the nodes of parsed files, live as long as the report; looking for cycles among them costs a tenth of
    # the time.
    gc.set_threshold(_ALLOCATIONS, *gc.get_threshold()[1:])
    from rlaudit.cli.inspect_arguments import parse

    try:
        options = parse(words)
    except SystemExit:  # argparse's, after --help
        return 0
    # Catalogue, readers and rules take longer to import than a command line to be parsed or refused.
    from rlaudit.cli.inspect import inspect

    return inspect(options)


def _interrupted(arguments: list[str]) -> int:
    kept = "; finished cells are kept, the same command goes on from there" if arguments[:1] == ["ablate"] else ""
    say(f"interrupted{kept}")
    return INTERRUPTED
