"""The framework's own switches, and what was not seen of a config."""

from fnmatch import fnmatchcase

from rlaudit.configs.dialects.reading import Reading
from rlaudit.configs.draft import leaves


def list_rest(reading: Reading) -> None:
    """List the framework's own switches, and what was not seen."""
    dialect, draft = reading.spec.declared, reading.draft
    patterns = [path for path in dialect.get("options", ()) if "*" in path]
    draft.list_options(reading.tree.root, *(path for path in dialect.get("options", ()) if path not in patterns))
    for name, leaf in leaves(reading.tree.root) if patterns else ():
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            draft.options.by_file(name, leaf)
    _name_unknown(reading)
    if "rest" in dialect:
        checkout = reading.code.checkout
        section = reading.node(dialect["rest"])
        draft.list_rest(
            section, reading.from_the_root(dialect["rest"]), lambda path: checkout is not None and checkout.has(path)
        )
    for entry in dialect.get("not seen", ()):
        if reading.holds(entry["if"]) is True:
            draft.not_seen.append(entry["say"])
    draft.not_seen += [
        f"{part} was not found, neither beside this config nor in its work tree, so what it sets is not known"
        for part in reading.tree.missing
    ]
    if reading.code.checkout is not None:
        draft.not_seen.append(reading.code.read)
    if reading.tree.command is not None:
        draft.not_seen += _unread_words(reading)
    if reading.tree.open and reading.tree.python_call is not None:
        draft.not_seen.append(f"further arguments of {reading.tree.python_call.name}: {reading.tree.open}")


def _name_unknown(reading: Reading) -> None:
    """Name the keys that are spelt like the ones that are read, and are unknown."""
    entry = reading.spec.declared.get("unknown options")
    if entry is None:
        return
    names = [name for name, _ in reading.tree.root.items() if fnmatchcase(name, entry["named"])]
    unknown = [name for name in names if name not in reading.spec.words and name not in reading.draft.options]
    if unknown:
        reading.draft.not_seen.append(f"{', '.join(unknown)}: {entry['because']}")


def _unread_words(reading: Reading) -> tuple[str, ...]:
    from rlaudit.configs import command_lines, hydra_dotlist

    assert reading.tree.command is not None
    if reading.tree.options_at:
        return command_lines.untold(reading.tree.command, reading.tree.options_at)
    return hydra_dotlist.untold(reading.tree.command)
