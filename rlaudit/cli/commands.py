"""Every command but `inspect`, with typer, which together with pydantic takes longer to import than `inspect` runs."""

import importlib
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

import rlaudit
from rlaudit.cli.examples import FIRST_STEPS, epilog, unwrapped
from rlaudit.standard_input import standard_input_as_file
from rlaudit.standard_output import to_stdout

# Statistics and engines take a second to import: a command's module is imported when that command is run.
# `inspect` parses its own arguments before typer is imported; here it serves the list of commands and completion.
COMMANDS = {
    "demo": "rlaudit.cli.demo:demo_command",
    "record": "rlaudit.cli.record:app",
    "inspect": "rlaudit.cli.inspect_completion:inspect_options",
    "ablate": "rlaudit.cli.ablate:ablate",
    "cell": "rlaudit.cli.cell:app",
    "compare": "rlaudit.cli.compare:compare",
    "curves": "rlaudit.cli.curves:curves",
    "diagnose": "rlaudit.cli.diagnose:diagnose",
    "report": "rlaudit.cli.report:report",
    "engines": "rlaudit.cli.engines:app",
    "explain": "rlaudit.cli.explain:explain",
    "list": "rlaudit.cli.list_what:list_",
}
# `rlaudit explain clusters` documents it.
HIDDEN = frozenset({"cell"})


class _Commands(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands in the order of a migration, without those that only schedulers call."""
        return [name for name in COMMANDS if name not in HIDDEN]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command, imported now; None if no command has that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        return typer.main.get_command(command if isinstance(command, typer.Typer) else _app_of(cmd_name, command))


def _app_of(name: str, function: Callable[..., object]) -> typer.Typer:
    command_app = typer.Typer(add_completion=False, rich_markup_mode=None)
    command_app.command(name, epilog=unwrapped(epilog(name)))(function)
    return command_app


app = typer.Typer(
    name="rlaudit",
    cls=_Commands,
    help="Are the logprobs of your next vLLM still the ones your RL trainer assumes, and if not, why?",
    epilog=unwrapped(FIRST_STEPS),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(requested: bool) -> None:
    if requested:
        to_stdout(f"rlaudit {rlaudit.__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """Options of rlaudit itself."""


def run_command(arguments: list[str]) -> object:
    """Run a command and return its result. Typer's Abort becomes its cause again: an EOFError is no Ctrl-C."""
    try:
        with standard_input_as_file(arguments) as words:
            return app(words, standalone_mode=False, prog_name="rlaudit")
    except typer.Abort as abort:
        if isinstance(abort.__cause__, EOFError):
            raise abort.__cause__ from None
        raise KeyboardInterrupt from None
