"""What YAML cannot say of prime-rl: files of one section, and tables that are spelt in several ways.

The file of a run has the sections inference, orchestrator and trainer; the file of one entry point has the content of
one of them at its root.
"""

from collections.abc import Iterator, Mapping
from pathlib import PurePath

from rlaudit.configs.dialects.reading import Reading
from rlaudit.configs.dialects.spec import Spec
from rlaudit.configs.dialects.tree import Tree
from rlaudit.configs.engine_names import canonical
from rlaudit.configs.merging import merged, nested
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, entries

# Section -> the words for it in names of files, the longer first.
_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "inference": ("inference", "infer"),
    "orchestrator": ("orchestrator", "orch"),
    "trainer": ("trainer", "train"),
}
_INFERENCE_ONLY = {
    "vllm_extra", "enable_fp32_lm_head", "enable_fp32_router_logits", "use_deep_gemm", "kv_cache_offload",
    "weight_broadcast", "api_server_count",
}  # fmt: skip


def trees(source: Source, _spec: Spec) -> Iterator[Tree]:
    """Find the run that a TOML file sets up."""
    root = _toml(source)
    written = _sections(root) if root is not None else None
    if written is not None:
        whole, parts = _with_files_beside(source, written)
        yield Tree(_arranged(whole), _arranged(written), parts=parts)


def _toml(source: Source | None) -> Node | None:
    try:
        return source.toml if source is not None and not source.outside else None
    except (ValueError, RecursionError):  # kept in source.refusals
        return None


def _with_files_beside(source: Source, sections: Node) -> tuple[Node, tuple[str, ...]]:
    """Return a file of one section with those of the others beside it (infer.toml, orch.toml, train.toml), and their
    paths.
    """
    section, *more = dict(sections.items())
    stem, parts = PurePath(source.path).stem, list[str]()
    word = next((word for word in _SECTIONS.get(section, ()) if word in stem), "")
    names = [(other, name) for other in _SECTIONS if other != section for name in _SECTIONS[other]]
    for other, name in names if word and not more else ():
        beside = source.neighbour(f"{stem.replace(word, name)}.toml")
        root = _toml(beside)
        if beside is not None and root is not None and not any(root.get(named) for named in _SECTIONS):
            sections = merged(nested((other,), root), sections)
            parts.append(beside.path)
    return sections, tuple(parts)


def _sections(root: Node) -> Node | None:
    """Return the sections of a prime-rl TOML, the root's own under its name; None for any other file."""
    inference, orchestrator, trainer = (_table(root, name) for name in _SECTIONS)
    if (orchestrator is not None and (inference is not None or trainer is not None)) or (
        inference is not None and (trainer is not None or _is_inference(inference))
    ):
        return root
    if inference is not None or orchestrator is not None or trainer is not None:
        return None
    if _is_inference(root):
        return nested(("inference",), root)
    return nested(("orchestrator",), root) if _is_orchestrator(root) else None


def _is_inference(table: Node) -> bool:
    names = set(dict(table.items()))
    if _table(table, "vllm") is not None:
        return bool(names & (_INFERENCE_ONLY | {"server", "deployment", "router", "slurm", "log"})) or len(names) == 1
    sized = bool({"tp", "dp"} & set(dict(entries(table.get("parallel")))))
    return _table(table, "model") is not None and (sized or bool(names & _INFERENCE_ONLY))


def _is_orchestrator(table: Node) -> bool:
    """Return whether a table samples for an environment, with a group size."""
    grouped = any(table.get(name) is not None for name in ("rollouts_per_example", "group_size", "batch_size"))
    sampling = table.get("train", "sampling") or _table(table, "sampling")
    places = (("env",), ("environment",), ("train", "env"), ("train", "source"))
    return grouped and sampling is not None and any(table.get(*path) is not None for path in places)


def _table(root: Node, name: str) -> Node | None:
    node = root.get(name)
    return node if node is not None and isinstance(node.value, dict) else None


def _arranged(root: Node) -> Node:
    """Return the sections with vLLM's spelling of pass-through keys, and with the rollouts' sampling as one table."""
    for table in ("vllm", "vllm_extra"):
        passed = root.get("inference", table)
        if passed is not None and isinstance(passed.value, dict):
            spelt = Node({canonical(name): node for name, node in passed.items()}, passed.place, passed.key)
            root = _with_node(root, ("inference", table), spelt)
    sampling: dict[str, Node] = {}
    for path in (("sampling",), ("train", "sampling")):
        for name, node in entries(root.get("orchestrator", *path)):
            sampling |= dict(node.items()) if name == "extra_body" else {name: node}
    return _with_node(root, ("sampling",), Node(sampling, root.place)) if sampling else root


def _with_node(root: Node, path: tuple[str, ...], node: Node) -> Node:
    """Return a tree with a node at a path."""
    if not path:
        return node
    below = _with_node(root.get(path[0]) or node, path[1:], node)
    return Node({**dict(root.items()), path[0]: below}, root.place, root.key)


def name_exceptions(reading: Reading) -> None:
    """Name environments that sample otherwise."""
    for path in (("env",), ("train", "env"), ("train", "source")):
        node = reading.tree.root.get("orchestrator", *path)
        for environment in node.elements() if node is not None else ():
            for sampling in (environment.get("sampling"), environment.get("env", "sampling")):
                if sampling is not None:
                    reading.draft.not_seen.append(
                        f"{sampling.place.setting} was not read: it is for one environment only"
                    )
