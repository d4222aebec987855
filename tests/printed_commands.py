"""The command lines in what reports print, given to the parser of the real command line."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import typer

from rlaudit.cli.commands import app
from rlaudit.cli.inspect_arguments import parse
from rlaudit.laboratory.recipe import names_recipe
from rlaudit.laboratory.studies.arms.further_factors import named_factors

# A step in words may end in a command, after a colon, and name another one after a semicolon.
IN_WORDS = re.compile(r"(?:^|: )(rlaudit .*?)(?=; |$)")


def commands_of(step: str) -> list[str]:
    """The command lines of a next step. Whatever else begins with the program's name would be taken for one."""
    found = IN_WORDS.findall(step)
    assert len(found) == len(re.findall(r"\brlaudit\b(?! (?:has|knows))", step)), step
    return found


def check(command: str) -> None:
    """Fail if the command line cannot be pasted: its parser refuses it, or there is no such recipe or factor."""
    program, name, *words = shlex.split(command)
    assert program == "rlaudit", command
    if name == "inspect":
        parse(words)
        return
    group = typer.main.get_command(app)
    with group.make_context("rlaudit", [name, *words]) as context:
        parsed = group.get_command(context, name).make_context(name, words).params  # type: ignore[attr-defined]
    if name == "ablate":
        named_factors(parsed["factor"] or ())
        # A config comes with a release; a path is a recipe.
        assert names_recipe(parsed["recipe"]) or os.sep in parsed["recipe"] or parsed["to"], command


def printed_in(report: Mapping[str, Any]) -> Iterator[str]:
    """The commands of a report."""
    for layer in report.get("layers", ()):
        yield from commands_of(layer["next"] or "")
    yield from (finding["confirm"] for finding in report.get("findings", ()) if finding.get("confirm"))
