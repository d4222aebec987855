"""The framework's own switches, further engines, and what was not seen of a config."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from rlaudit.configs.draft import Draft, known, leaves
from rlaudit.configs.syntax.node import Node
from rlaudit.dialects.reading import Reading

# How a reward model's, a judge's or a teacher's engine is known.
_NAMES_AN_ENGINE = ("strategy_name", "name", "backend", "generation_backend")
# Two of these together are an engine's.
_SIGNS = {
    "gpu_memory_utilization", "tensor_parallel_size", "tensor_model_parallel_size", "enforce_eager", "max_model_len",
    "strategy_config", "vllm_cfg", "vllm_serve_kwargs",
}  # fmt: skip
_DEEPEST = 6


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


def take_second_engines(draft: Draft, root: Node, *own: str) -> None:
    """List the engines of a config outside of `own`, the dotted paths of the one that is read."""
    for path, node in _engines(root, "", own, 0):
        draft.list_options(node, *(key for key, _ in node.items()))
        for key in dict(node.items()):
            for name in [one for one in draft.options if one == key or one.startswith(f"{key}.")]:
                draft.options[f"{path}.{name}"] = draft.options.pop(name)
        draft.not_seen.append(
            f"{path}: an engine of its own, as of a judge or a teacher; its settings are listed, not judged"
        )


def _engines(node: Node, path: str, own: tuple[str, ...], depth: int) -> Iterator[tuple[str, Node]]:
    for key, child in node.items():
        below = f"{path}.{key}" if path else key
        if below in own or not isinstance(child.value, dict) or depth > _DEEPEST:
            continue
        if _is_engine(child):
            yield below, child
        else:
            yield from _engines(child, below, own, depth + 1)


def _is_engine(node: Node) -> bool:
    says = any(known(node.get(key)) == "vllm" for key in _NAMES_AN_ENGINE)
    held = sum(node.get(key) is not None for key in _SIGNS)
    return held >= 1 if says or node.get("vllm_serve_kwargs") is not None else held >= 3
