"""The command line: exit codes, and the one place where errors become them.

0 nothing at or above --fail-on; 1 findings or a mismatch; 2 bad command line or configuration; 3 audit not finished;
70 a bug in rlaudit; 130 interrupted, finished cells kept.
"""

import os
import sys

import rlaudit
from rlaudit.cli.removed_options import refuse_removed
from rlaudit.errors import NotFinished, RlauditError
from rlaudit.say import say
from rlaudit.secrets import learn, learn_text, mask
from rlaudit.unusable_place import unusable_place

BUG = 70
INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:  # noqa: PLR0911 - one return for each exit code
    """Run one command line and return its exit code."""
    learn(dict(os.environ))
    learn_text(" ".join(arguments))
    try:
        outcome = _outcome(arguments)
    except RlauditError as error:
        say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return _interrupted(arguments)
    except SystemExit as leaving:
        # argparse exits with 0 or 2. Any other exit (Ray exits at SIGTERM) must not pass for a verdict.
        return int(leaving.code or 0) if leaving.code in (None, 0, 2) else _interrupted(arguments)
    except EOFError as error:
        cut_off = NotFinished(f"a file that was read ended too early: {error}", "was it cut off? write it again")
        say(str(cut_off))
        return cut_off.exit_code
    except OSError as error:
        place = unusable_place(error)
        if place is None:
            return _bug()
        say(str(place))
        return place.exit_code
    except Exception as error:
        if hasattr(error, "show") and hasattr(error, "exit_code"):  # typer's usage errors know how to print themselves
            error.show()
            return 2
        return _bug()
    # Typer returns this code after Ctrl-C and prints nothing. `record` returns the code of its command.
    if outcome == INTERRUPTED and arguments[:1] != ["record"]:
        return _interrupted(arguments)
    return outcome if isinstance(outcome, int) else 0


def _bug() -> int:
    import traceback

    if sys.stderr is not None:
        print(mask(traceback.format_exc()), file=sys.stderr)
    say(f"this is a bug in rlaudit {rlaudit.__version__}; please report the lines above")
    return BUG


def _outcome(arguments: list[str]) -> object:
    refuse_removed(arguments)
    if arguments[:1] == ["inspect"]:
        from rlaudit.cli.inspect import inspect

        return inspect(arguments[1:])
    if arguments[:1] == ["explain"] and len(arguments) == 2 and not arguments[1].startswith("-"):
        # One name needs no parser, and to import typer takes longer than to print a page.
        from rlaudit.cli.pages import print_page

        return print_page(arguments[1])
    from rlaudit.cli.commands import run_command

    return run_command(arguments)


def _interrupted(arguments: list[str]) -> int:
    kept = "; finished cells are kept, the same command goes on from there" if arguments[:1] == ["ablate"] else ""
    say(f"interrupted{kept}")
    return INTERRUPTED
