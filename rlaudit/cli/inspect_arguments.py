"""The arguments of `rlaudit inspect`, with argparse: typer and pydantic would take longer than the inspection."""

import argparse
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rlaudit.cli.examples import epilog
from rlaudit.cli.output import HELP as OUTPUT_HELP
from rlaudit.cli.removed_options import no_option
from rlaudit.errors import UsageError
from rlaudit.severity import FailFor

EXIT_CODES = """Exit codes: 0 nothing at or above --fail-on; 1 findings; 2 bad command line;
3 not finished (no config, or a named file could not be read); 70 a bug in rlaudit."""
FIX_MODES = ("safe", "unsafe")
FAIL_ON = ("error", "warning", "note", "never")
FAIL_FOR = tuple(map(str, FailFor))
FAIL_FOR_HELP = "move: fail only on what the move brings; state (the default): also on what is wrong today"


@dataclass(frozen=True)
class Arguments:
    """The parsed command line."""

    paths: list[str]
    # --from.
    before: str | None
    # --to.
    after: str | None
    platform: str | None
    model: str | None
    framework: list[str]
    framework_source: list[str]
    python: list[str]
    dialect: list[Path]
    select: list[str]
    ignore: list[str]
    fail_on: str | None
    fail_for: str | None
    exit_zero: bool
    output: list[str]
    diff: bool
    fix: str | None
    stdin_name: str | None
    allow_no_config: bool
    verbose: bool
    bump: str | None = None


class _Help(argparse.HelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Keep the lines: a command line that is broken in two cannot be pasted."""
        return "\n".join(f"{indent}{line}" for line in text.splitlines())


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        """Raise one sentence instead of printing the whole usage."""
        raise UsageError(message, "see: rlaudit inspect --help")

    def options(self) -> list[str]:
        """Return the options, each as it is written."""
        return [option for action in self._actions for option in action.option_strings]


def parse(arguments: list[str]) -> Arguments:
    """Parse the command line. Raises UsageError for a wrong one, SystemExit after --help."""
    # argparse would take the word behind a bare --fix, often a path, for its value.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    for word, following in pairwise(arguments[:end]):
        if word == "--fix" and following in FIX_MODES:
            raise UsageError(
                f"--fix {following}: the mode is joined to the option",
                f"--fix={following}, or ./{following} for a file of that name",
            )
    words = ["--fix=safe" if word == "--fix" else word for word in arguments[:end]] + arguments[end:]
    parser = arguments_parser()
    for word in arguments[:end]:
        if word.startswith("--") and (option := word.partition("=")[0]) not in parser.options():
            raise no_option(option, parser.options(), parser.prog)
    return Arguments(**vars(parser.parse_intermixed_args(words)))


def arguments_parser() -> _Parser:
    """Return the parser behind `parse`."""
    parser = _Parser(
        prog="rlaudit inspect",
        description="Read rollout configs and report what moves the logprobs when vLLM changes.\nNothing is started.",
        epilog=f"{EXIT_CODES}\n\n{epilog('inspect')}",
        formatter_class=_Help,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", help="files or folders; - is standard input")
    add("--from", dest="before", metavar="VERSION", help="vLLM that runs today; from lock files when left out")
    add("--to", dest="after", metavar="VERSION", help="vLLM to move to; from lock files when left out")
    add("--platform", metavar="NAME", help="cuda, cpu, npu, rocm, or a device such as a100: defaults depend on it")
    add("--model", metavar="NAME", help="the model or its folder, instead of what configs name")
    add("--framework", action="append", default=[], metavar="NAME==VERSION",
        help="the release of a framework, as if the project pinned it; repeatable")  # fmt: skip
    add("--framework-source", action="append", default=[], metavar="DIR",
        help="a folder with the framework's source, repeatable; else the checkout that the config lies in")  # fmt: skip
    add("--python", action="append", default=[], metavar="PATH",
        help="an interpreter in whose environment the framework is installed; it is not run")  # fmt: skip
    add("--dialect", action="append", default=[], type=Path, metavar="FILE",
        help="a YAML file that declares your framework, repeatable (rlaudit explain dialects)")  # fmt: skip
    add("--select", action="append", default=[], metavar="RULE|LAYER", help="run only these, repeatable")
    add("--ignore", action="append", default=[], metavar="RULE|LAYER", help="do not run these, repeatable")
    add("--fail-on", choices=FAIL_ON, help="the severity from which findings exit with 1 (error)")
    add("--fail-for", choices=FAIL_FOR, help=FAIL_FOR_HELP)
    add("--exit-zero", action="store_true", help="findings never exit with 1")
    add("--output", action="append", default=[], metavar="FORMAT[:PATH]", help=OUTPUT_HELP)
    add("-v", "--verbose", action="store_true",
        help="notes too, and settings whose change has no effect on logprobs (text and Markdown)")  # fmt: skip
    add("--diff", action="store_true", help="print what --fix would do as a patch, and change nothing")
    add("--fix", choices=FIX_MODES, metavar="MODE",
        help="--fix makes the safe fixes, --fix=unsafe (with the =) all of them")  # fmt: skip
    add("--bump", metavar="BASE..HEAD", help="what a new vLLM pin changes: git revisions, or an older copy of PATH")
    add("--stdin-name", metavar="NAME", help="what to take standard input for, as base.yaml; recognised when left out")
    add("--allow-no-config", action="store_true", help="exit with 0 if no config is found, for hooks")
    return parser
