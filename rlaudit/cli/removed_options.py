"""Options that a command does not have, and what to write instead: those that a release removed, and misspelt ones."""

from collections.abc import Iterable, Mapping, Sequence

from rlaudit.errors import UsageError
from rlaudit.text.did_you_mean import did_you_mean

# `COMMAND --option`, `COMMAND WORD` or `COMMAND` -> what replaces it, in words that can be pasted.
REPLACED_BY: Mapping[str, str] = {
    "ablate --shard": "a Ray cluster shares a run out: rlaudit ablate RECIPE --executor ray (rlaudit explain clusters)",
    "ablate --merge": "a run has one directory, on a cluster too: rlaudit ablate RECIPE --executor ray --run-dir RUN",
    "cell": "the ablate command of a run goes on from its finished cells: rlaudit ablate RECIPE --run-dir RUN",
    "curves --follow": "look as often as you like: rlaudit curves LOG --gate 'k3<0.015' (rlaudit explain logs)",
    "curves --every": "look as often as you like: rlaudit curves LOG --gate 'k3<0.015'",
    "curves --until-silent": "look as often as you like: rlaudit curves LOG --gate 'k3<0.015'",
    "curves --quiet": "leave it out: curves prints no progress",
    "report --table": "limits learned from your own runs: rlaudit curves NEW --gates-from RUNS --export prime-rl",
    "inspect --baseline": "a comment silences a finding: # rlaudit: ignore[RULE] why (rlaudit explain ci)",
    "inspect --write-baseline": "a comment silences a finding: # rlaudit: ignore[RULE] why (rlaudit explain ci)",
    "ablate --keep": "one recipe is about two releases: rlaudit engines remove --unused 30",
    "ablate every-release": "what was measured of a release: rlaudit explain 0.18.1; which were: rlaudit list versions",
    "ablate updates-by-release": "what was measured of a release: rlaudit explain 0.18.1; which were: rlaudit list "
    "versions",
    "inspect --defaults": "what moves between two releases: rlaudit explain 0.8.5..0.18.1",
}


def refuse_removed(arguments: Sequence[str]) -> None:
    """Raise UsageError if a command line has an option or a command that was removed, before any parser reads it.

    What follows `--` belongs to another program.
    """
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    command, *words = ours or [""]
    for name in (command, *(f"{command} {word.partition('=')[0]}" for word in words)):
        if name in REPLACED_BY:
            raise UsageError(f"rlaudit {name} was removed", REPLACED_BY[name])


def no_option(option: str, known: Iterable[str], command: str) -> UsageError:
    """Return the error for an option that a command does not have."""
    return UsageError(f"there is no option {option}", did_you_mean(option, known, f"see: {command} --help"))
