"""The command line: exit codes, and the one place where errors become them.

0 nothing at or above --fail-on; 1 findings or a mismatch; 2 bad command line or configuration; 3 audit not finished;
70 a bug in rlaudit; 130 interrupted, finished cells kept.
"""

import sys
import traceback

import typer

import rlaudit
from rlaudit.cli import ablate, engines, explain, report
from rlaudit.errors import RlauditError

BUG = 70
INTERRUPTED = 130

app = typer.Typer(
    name="rlaudit",
    help="Are the logprobs of your next vLLM still the ones your RL trainer assumes, and if not, why?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("ablate")(ablate.ablate)
app.command("report")(report.report)
app.add_typer(engines.app, name="engines")
app.command("explain")(explain.explain)
app.command("list")(explain.list_)


def _version(asked: bool) -> None:
    if asked:
        print(f"rlaudit {rlaudit.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Options of rlaudit itself."""


def main() -> None:
    """Run the command line and leave with the code of the contract."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:  # noqa: PLR0911 - one return for each code of the contract
    """The exit code of one command line."""
    try:
        outcome = app(arguments, standalone_mode=False)
    except RlauditError as error:
        print(f"rlaudit: {error}", file=sys.stderr)
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return _interrupted()
    except BrokenPipeError:
        # The reader of our output went away, as `head` does: nothing is wrong with the audit.
        sys.stderr.close()
        return 0
    except Exception as error:
        if hasattr(error, "show") and hasattr(error, "exit_code"):  # typer's usage errors know how to print themselves
            error.show()
            return 2
        traceback.print_exc()
        print(
            f"rlaudit: this is a bug in rlaudit {rlaudit.__version__}; please report the lines above",
            file=sys.stderr,
        )
        return BUG
    # Typer answers Ctrl-C itself, with this code and without a word.
    if outcome == INTERRUPTED:
        return _interrupted()
    return outcome if isinstance(outcome, int) else 0


def _interrupted() -> int:
    print("rlaudit: interrupted; finished cells are kept, the same command goes on from there", file=sys.stderr)
    return INTERRUPTED
