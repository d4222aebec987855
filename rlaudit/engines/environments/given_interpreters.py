"""The interpreters that the user gives with `--python` and `--trainer-python`.

    --python 0.8.5=/opt/old/bin/python --python '0.18.1=apptainer exec --nv vllm.sif python3'
    --python /opt/vllm/bin/python               if only one release is requested
    --trainer-python 'conda run -n train python'

The value is an interpreter, or a command line in front of one, split into words as a shell does; no shell is started.
`~/` at the beginning of a word is the home folder: a shell does not expand it after a `=`.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from packaging.version import InvalidVersion, Version

from rlaudit.engines.environments.environment_spec import Command
from rlaudit.errors import UsageError
from rlaudit.files.home import expanded

ENGINE_HELP = (
    "VERSION=COMMAND, repeatable: an interpreter that holds this vLLM, or a command line in front of one "
    "(apptainer exec --nv vllm.sif python3). COMMAND alone is enough for one release."
)
TRAINER_HELP = "An interpreter with torch and transformers, or a command line in front of one."


@dataclass(frozen=True)
class GivenInterpreters:
    """The commands of interpreters. Each is empty if none was given."""

    # By release, spelled as the user did.
    by_release: Mapping[str, Command] = field(default_factory=dict)
    # The one without a release.
    engine: Command = ()
    trainer: Command = ()

    def __bool__(self) -> bool:
        return bool(self.by_release or self.engine or self.trainer)

    def of(self, releases: Sequence[str]) -> "GivenInterpreters":
        """Return the interpreters of these releases alone, as `for_releases` refuses others."""
        wanted = {Version(release) for release in releases}
        kept = {release: command for release, command in self.by_release.items() if Version(release) in wanted}
        return replace(self, by_release=kept)

    def for_releases(self, releases: Sequence[str]) -> dict[str, Command]:
        """Return the command of each of these releases that has one.

        Raises UsageError for a release that is not requested, and for a command without a release if more than one
        is.
        """
        wanted = {Version(release): release for release in releases}
        needed = " and ".join(releases)
        for release in self.by_release:
            if Version(release) not in wanted:
                raise UsageError(f"--python {release}=...: no arm runs vLLM {release}", f"Needed here: {needed}.")
        if self.engine:
            if len(wanted) > 1:
                each = " ".join(f"--python {release}=COMMAND" for release in releases)
                raise UsageError(
                    f"--python {shlex.join(self.engine)} names no release, and more than one is needed: {needed}",
                    f"Write {each}.",
                )
            return dict.fromkeys(releases, self.engine)
        return {wanted[Version(release)]: command for release, command in self.by_release.items()}


NONE_GIVEN = GivenInterpreters()


def given_interpreters(engines: Sequence[str] | None, trainer: str | None = None) -> GivenInterpreters:
    """Parse the options. Raises UsageError for a command that cannot be split, and a release named twice."""
    by_release: dict[str, Command] = {}
    unnamed: list[Command] = []
    for text in engines or ():
        release, command_line = _release_of(text)
        command = _words(command_line, f"--python {text}")
        if release is None:
            unnamed.append(command)
        elif any(Version(release) == Version(other) for other in by_release):
            raise UsageError(f"--python names vLLM {release} twice", "Give one command for each release.")
        else:
            by_release[release] = command
    if len(unnamed) + bool(by_release) > 1:
        raise UsageError(
            f"--python {shlex.join(unnamed[0])} names no release beside other interpreters",
            "Write --python VERSION=COMMAND for each.",
        )
    return GivenInterpreters(by_release, unnamed[0] if unnamed else (), trainer_command(trainer))


def trainer_command(text: str | None) -> Command:
    """Parse `--trainer-python`; empty if it was not given."""
    return () if text is None else _words(text, f"--trainer-python {text}")


def _release_of(text: str) -> tuple[str | None, str]:
    """Return the release before the `=`, and the command after it; an `=` in a path or a later word does not count."""
    before, equals, after = text.partition("=")
    if not equals or "/" in before or len(before.split()) != 1:
        return None, text
    try:
        return str(Version(before)), after
    except InvalidVersion:
        raise UsageError(
            f"--python {text}: {before!r} is not a vLLM release", "Write VERSION=COMMAND, such as 0.18.1=/path/python."
        ) from None


def _words(text: str, option: str) -> Command:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{option} cannot be read: {error}", "Quote it as for a shell.") from None
    if not words or not words[0]:
        raise UsageError(f"{option} names no interpreter", "Write --python VERSION=COMMAND.")
    return tuple(str(expanded(word)) if word.startswith("~/") else word for word in words)
