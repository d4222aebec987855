"""The framework's own switches, further engines, and what was not seen of a config."""

from fnmatch import fnmatchcase

from rlaudit.configs.draft import leaves
from rlaudit.configs.second_engines import take_second_engines
from rlaudit.dialects.reading import Reading


def list_rest(reading: Reading) -> None:
    """List the framework's own switches, further engines, and what was not seen."""
    said, draft = reading.spec.said, reading.draft
    patterns = [path for path in said.get("options", ()) if "*" in path]
    draft.list_options(reading.tree.root, *(path for path in said.get("options", ()) if path not in patterns))
    for name, leaf in leaves(reading.tree.root) if patterns else ():
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            draft.options.by_file(name, leaf)
    _name_unknown(reading)
    if "rest" in said:
        checkout = reading.code.checkout
        section = reading.node(said["rest"])
        draft.list_rest(
            section, _from_the_root(reading, said["rest"]), lambda path: checkout is not None and checkout.has(path)
        )
    if "other engines" in said and reading.holds(said["other engines"].get("if")) is True:
        take_second_engines(draft, reading.tree.root, *said["other engines"]["besides"])
    for entry in said.get("not seen", ()):
        if reading.holds(entry["if"]) is True:
            draft.not_seen.append(entry["say"])
    draft.not_seen += [f"{part}, which this config inherits, is not beside it" for part in reading.tree.missing]
    draft.not_seen += reading.tree.limits
    if reading.code.checkout is not None:
        draft.not_seen.append(reading.code.read)
    if reading.tree.command is not None:
        draft.not_seen += _untold(reading)
    if reading.tree.open and reading.tree.python_call is not None:
        draft.not_seen.append(f"further arguments of {reading.tree.python_call.name}: {reading.tree.open}")


def _name_unknown(reading: Reading) -> None:
    """Say which keys are named like ones that are read, and are none."""
    said = reading.spec.said.get("unknown options")
    if said is None:
        return
    names = [name for name, _ in reading.tree.root.items() if fnmatchcase(name, said["named"])]
    unknown = [name for name in names if name not in reading.spec.words and name not in reading.draft.options]
    if unknown:
        reading.draft.not_seen.append(f"{', '.join(unknown)}: {said['because']}")


def _from_the_root(reading: Reading, path: str) -> str:
    """Return a path from the file's root."""
    return ".".join(part for part in (reading.layout.root, path[1:]) if part) if path.startswith("@") else path


def _untold(reading: Reading) -> tuple[str, ...]:
    from rlaudit.configs import command_lines, hydra_dotlist

    assert reading.tree.command is not None
    if reading.tree.options_at:
        return command_lines.untold(reading.tree.command, reading.tree.options_at)
    return hydra_dotlist.untold(reading.tree.command)
