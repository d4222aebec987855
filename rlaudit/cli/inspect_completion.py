"""What a shell completes after `rlaudit inspect`: typer completes and argparse parses the same options."""

import argparse
import inspect
from collections.abc import Callable
from typing import Any

import typer

from rlaudit.cli.inspect_arguments import arguments_parser
from rlaudit.cli.names import Completed, described, formats, one_of, rule_names


def _completable() -> Callable[..., None]:
    def inspected(**arguments: object) -> None:
        """Say what a vLLM upgrade does to your rollout configs."""
        raise AssertionError("rlaudit inspect parses its own arguments")

    parameters = [_parameter(action) for action in arguments_parser()._actions if action.dest != "help"]
    inspected.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    inspected.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return inspected


# By the name of an argument; those with choices complete these.
NAMED = {
    **dict.fromkeys(("before", "after"), lambda: described()["versions"]),
    **dict.fromkeys(("select", "ignore"), rule_names),
    "output": formats,
}


def _names_of(action: argparse.Action) -> Completed | None:
    names = (lambda: map(str, action.choices or ())) if action.choices else NAMED.get(action.dest)
    return None if names is None else one_of(names)


def _parameter(action: argparse.Action) -> inspect.Parameter:
    kind: Any = bool if action.nargs == 0 else str
    names = _names_of(action)
    default: Any
    if action.option_strings:
        default = typer.Option(
            False if kind is bool else None, *action.option_strings, help=action.help, autocompletion=names
        )
    else:
        kind, default = list[str], typer.Argument(None, help=action.help)
    return inspect.Parameter(action.dest, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


# A function that does nothing, with the options of `rlaudit inspect` as typer declares them.
inspect_options = _completable()
