"""Every command but `inspect`, with typer, which together with pydantic takes longer to import than `inspect` runs."""

import importlib
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

import rlaudit
from rlaudit.cli.examples import FIRST_STEPS, epilog, unwrapped
from rlaudit.errors import UsageError
from rlaudit.files.standard_input import standard_input_as_file
from rlaudit.files.standard_output import to_stdout
from rlaudit.text.did_you_mean import did_you_mean

# Each command's module, and its line in the list of commands. Statistics and engines take a second to import: a module
# is imported when its command is run, and not for the list; a test holds the line against the command's own help.
# `inspect` parses its own arguments before typer is imported; here it serves the list of commands and completion.
COMMANDS = {
    "demo": ("rlaudit.cli.demo:demo_command", "Show one real case, offline, in a few seconds."),
    "record": ("rlaudit.cli.record:app", "Record what a training requests from vLLM, and what vLLM does."),
    "inspect": (
        "rlaudit.cli.inspect_completion:inspect_options",
        "Say what a vLLM upgrade does to your rollout configs.",
    ),
    "ablate": ("rlaudit.cli.ablate:ablate", "Find the setting that causes a mismatch, by controlled runs."),
    "compare": (
        "rlaudit.cli.compare:compare",
        "Compare logged rollout and trainer logprobs: meaning and distance.",
    ),
    "probe": ("rlaudit.cli.probe:probe", "Ask a running server what its logprobs mean, read-only."),
    "curves": ("rlaudit.cli.curves:curves", "Find the first step at which training curves separate."),
    "diagnose": (
        "rlaudit.cli.diagnose:diagnose",
        "Join runs, comparisons and recordings in one diagnosis, layer by layer.",
    ),
    "report": ("rlaudit.cli.report:report", "Render a run again, finished or not."),
    "engines": ("rlaudit.cli.engines:app", "Isolated engine environments, one per vLLM version."),
    "explain": ("rlaudit.cli.explain:explain", "Print all about a rule, cause, metric, release or topic."),
    "list": ("rlaudit.cli.list_what:list_", "List rules, causes, releases and more, one line each."),
}


class _Commands(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands in the order of a migration."""
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands from COMMANDS, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command, imported now. Raises UsageError, with the nearest, if no command has that name."""
        if cmd_name not in COMMANDS:
            way_out = did_you_mean(cmd_name, COMMANDS, "see: rlaudit --help")
            raise UsageError(f"there is no command {cmd_name!r}", way_out)
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
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
