"""The framework's own switches, further engines, and what was not seen of a config."""

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from rlaudit.configs.dialects.reading import Reading
from rlaudit.configs.draft import known, leaves
from rlaudit.configs.syntax.node import Node

# Keys that name the engine of a reward model, a judge or a teacher.
_NAMES_AN_ENGINE = ("strategy_name", "name", "backend", "generation_backend")
# Arguments of an engine: three of them together are one's.
_SIGNS_OF_AN_ENGINE = 3
_SIGNS = {
    "gpu_memory_utilization", "tensor_parallel_size", "tensor_model_parallel_size", "enforce_eager", "max_model_len",
    "strategy_config", "vllm_cfg", "vllm_serve_kwargs",
}  # fmt: skip
_DEEPEST = 6


def list_rest(reading: Reading) -> None:
    """List the framework's own switches, further engines, and what was not seen."""
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
    if "other engines" in dialect:
        engines = second_engines(reading.tree.root, dialect["other engines"]["besides"])
        draft.not_seen += [
            f"{path} was not inspected: it is another engine, such as that of a judge or a teacher" for path in engines
        ]
    for entry in dialect.get("not seen", ()):
        if reading.holds(entry["if"]) is True:
            draft.not_seen.append(entry["say"])
    draft.not_seen += [
        f"{part} was found neither beside this config nor in its work tree, so its settings are not known"
        for part in reading.tree.missing
    ]
    if reading.code.checkout is not None:
        draft.not_seen.append(reading.code.read)
    if reading.tree.command is not None:
        draft.not_seen += _unread_words(reading)
    if reading.tree.open and reading.tree.python_call is not None:
        draft.not_seen.append(
            f"further arguments of {reading.tree.python_call.name} are not known: {reading.tree.open}"
        )


def _name_unknown(reading: Reading) -> None:
    """Name the keys that are spelt like the ones that are read, and are unknown."""
    entry = reading.spec.declared.get("unknown options")
    if entry is None:
        return
    names = [name for name, _ in reading.tree.root.items() if fnmatchcase(name, entry["named"])]
    unknown = [name for name in names if name not in reading.spec.words and name not in reading.draft.options]
    if unknown:
        were = "was" if len(unknown) == 1 else "were"
        reading.draft.not_seen.append(f"{', '.join(unknown)} {were} not read: {entry['because']}")


def _unread_words(reading: Reading) -> tuple[str, ...]:
    from rlaudit.configs import command_lines, hydra_dotlist

    assert reading.tree.command is not None
    if reading.tree.options_at:
        return command_lines.untold(reading.tree.command, reading.tree.options_at)
    return hydra_dotlist.untold(reading.tree.command)


def second_engines(node: Node, judged: Collection[str], path: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the paths of further engines, as of a judge or a teacher. judged: those of the engine that is judged."""
    for key, child in node.items():
        below = f"{path}.{key}" if path else key
        if below in judged or not isinstance(child.value, dict) or depth > _DEEPEST:
            continue
        switch = child.get("enable") or child.get("enabled")
        if switch is not None and not known(switch, True):
            continue
        is_named = child.get("vllm_serve_kwargs") is not None or any(
            known(child.get(name)) == "vllm" for name in _NAMES_AN_ENGINE
        )
        if sum(child.get(sign) is not None for sign in _SIGNS) >= (1 if is_named else _SIGNS_OF_AN_ENGINE):
            yield below
        else:
            yield from second_engines(child, judged, below, depth + 1)
