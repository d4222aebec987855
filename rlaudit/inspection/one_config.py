"""The one rollout config in a file, as an inspection reads it: for commands that are about one engine."""

from pathlib import Path

from rlaudit.errors import UsageError
from rlaudit.inspection.files import collect
from rlaudit.inspection.inspect_file import Context, InspectedConfig, inspect_file
from rlaudit.inspection.read_configs import known_dialects
from rlaudit.inspection.selection import known_rules
from rlaudit.inspection.versions import version_named
from rlaudit.vllm.machine import Machine


def one_config(
    path: Path,
    machine: Machine,
    before: str | None = None,
    after: str | None = None,
    otherwise: str = "no rollout config",
) -> InspectedConfig:
    """before, after: vLLM's releases, from the file's surroundings where None. otherwise: what a file without one is.

    Raises UsageError where there is no config, or several.
    """
    collected = collect([str(path)], "", lambda _path: False)
    if not collected.files:
        raise UsageError(f"{path}: {collected.unread[0].reason if collected.unread else 'not found'}")
    sides = [version_named(side) if side is not None else None for side in (before, after)]
    context = Context(known_rules(), known_dialects(), machine, *sides, machine_known=True)
    found = inspect_file(collected.files[0], context)
    if found.bugs:
        raise RuntimeError("; ".join(str(bug) for bug in found.bugs))
    if found.unreadable:
        raise UsageError(f"{path}: {found.unreadable}")
    if not found.configs:
        raise UsageError(f"{path} is {otherwise} that rlaudit reads", "see: rlaudit list frameworks")
    if len(found.configs) > 1:
        engines = ", ".join(str(one.audit.config.place or one.audit.config.path) for one in found.configs)
        raise UsageError(
            f"{path} sets up {len(found.configs)} engines ({engines}), expected one",
            "keep the rollout engine in a file of its own",
        )
    return found.configs[0]
