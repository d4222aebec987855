"""The functions of frameworks in which a trainer's logprobs are read, and frameworks whose logprobs were not read.

A framework that has moved a function is not recorded any more, and nothing fails. The recording shows it: a framework
was imported, and no row of a trainer's was written.
"""

from collections.abc import Iterator

from rlaudit.recording.recording import Recording
from rlaudit.recording.shipped.rlaudit_frameworks import FUNCTIONS, MODULES, NOT_READ


def known_functions() -> str:
    """Return a list of the functions that are known, each with the releases that it was read in."""
    lines = [f"  {target}\n    {where}" for target, (_, where) in FUNCTIONS.items()]
    missing = [f"  {framework}" for framework in NOT_READ]
    return "\n".join(
        (
            "A trainer's logprobs are read off these functions (in the oldest and newest release that was read, line):",
            *lines,
            "and off those that --trainer-function names. Not read:",
            *missing,
        )
    )


def unread_trainers(recording: Recording) -> Iterator[str]:
    """Yield a sentence for each framework that was imported in a recording without a row of any trainer's."""
    if any(process.trainer for process in recording.processes):
        return
    hooked = dict.fromkeys(target for process in recording.processes for target in process.hooked)
    for framework in dict.fromkeys(name for module, name in MODULES.items() if module in hooked):
        packages = {module.partition(".")[0] for module, name in MODULES.items() if name == framework}
        functions = [target for target in FUNCTIONS if target.partition(".")[0] in packages]
        imported = [target for target in functions if target in hooked]
        if not functions:
            why = "it makes them in no separate function"
        elif imported:
            why = f"{' and '.join(imported)} was not called with a recorded completion"
        else:
            why = "no function that is known for it was imported in a process that is recorded"
        versions = (process.versions.get(framework.lower()) for process in recording.processes)
        releases = dict.fromkeys(filter(None, versions))
        yield (
            f"{' '.join([framework, *releases])} was imported, and no logprobs of a trainer are recorded: {why} "
            "(rlaudit explain recording; --trainer-function MODULE:NAME)"
        )
