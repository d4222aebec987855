"""From which vLLM to which: what the command line says, else what the project says, else the newest known."""

from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from rlaudit.errors import UsageError
from rlaudit.vllm.catalogue import known_versions


@dataclass(frozen=True)
class Versions:
    """The two sides. said: where they come from, in sentences, for people."""

    before: Version
    after: Version
    said: tuple[str, ...] = ()

    @property
    def migrates(self) -> bool:
        """Whether there are two versions."""
        return self.before != self.after


def version_named(text: str) -> Version:
    """A version as written on the command line. Raises UsageError."""
    try:
        version = Version(Version(text.removeprefix("v")).public)
    except InvalidVersion:
        raise UsageError(f"{text!r} is not a vLLM version", "write a release such as 0.18.1") from None
    if version < known_versions()[0]:
        raise UsageError(
            f"vLLM {version} is too old: the catalogue begins with {known_versions()[0]}", "see: rlaudit list versions"
        )
    return version


def choose(
    before: Version | None, after: Version | None, path: str, text: str, recorded: Version | None = None
) -> Versions:
    """The versions for one file. A version on the command line wins; the project's own fills in the other side. Where
    both are said and the project runs another, that is said.

    recorded: the release that ran, which nothing around a recording knows better.
    """
    from rlaudit.inspection.version_hints import Hint, Hints, hints_for

    found = hints_for(path, text) if recorded is None else Hints((Hint(recorded, path),))
    if before is not None and after is not None:
        catalogued = [one for one in found.hints if one.version >= known_versions()[0]]
        other = (one for one in catalogued[:1] if one.version not in (before, after))
        said = [f"{one.where} says vLLM {one.version}; it is read from {before} on all the same" for one in other]
        return Versions(before, after, tuple(said))
    oldest, newest = known_versions()[0], known_versions()[-1]
    said = list(found.remarks)
    usable = []
    for one in found.hints:
        if one.version < oldest:
            said.append(f"{one.where} says vLLM {one.version}, older than the catalogue ({oldest}): not used")
        else:
            usable.append(one)
    if not usable:
        only = before or after
        if only is not None:
            said.append(f"vLLM {only} alone: nothing says what else was or will be run, so nothing migrates")
            return Versions(only, only, tuple(said))
        said.append(f"nothing says which vLLM runs: inspected at the newest known, {newest}; give --from and --to")
        return Versions(newest, newest, tuple(said))
    hint = usable[0]
    others = dict.fromkeys(f"{other.where} says {other.version}" for other in usable if other.version != hint.version)
    also = f" ({'; '.join(others)})" if others else ""
    side = "--from" if before is None else "--to"
    side = "--from and --to" if before is None and after is None else side
    said.append(f"{side} {hint.version} from {hint.where}{also}")
    return Versions(before or hint.version, after or hint.version, tuple(said))
