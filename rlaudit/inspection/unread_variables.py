"""Variables of vLLM in a config that no reader took: a launcher's own section may well hand them to the engine.

Said, and not taken for the engine's: which process such a section is for, its own program decides.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node

_VARIABLE = re.compile(r"VLLM_[A-Z0-9_]+")


def unread_variables(source: Source, configs: Sequence[RolloutConfig]) -> tuple[str, ...]:
    """One sentence for each mapping of a YAML or TOML file that sets variables which no config of the file has."""
    if not configs or "VLLM_" not in source.text or source.suffix not in {".yaml", ".yml", ".toml"}:
        return ()
    roots = source.plain_yaml if source.suffix != ".toml" else (source.toml,)
    taken = {name for config in configs for name in config.environment}
    found = (
        {name: node for name, node in mapping.items() if _VARIABLE.fullmatch(name) and name not in taken}
        for root in roots if root is not None for mapping in _mappings(root)
    )  # fmt: skip
    return tuple(_said(source, variables) for variables in found if variables)


def _mappings(root: Node) -> Iterator[Node]:
    """Every mapping of a document. Iterative, so that nesting costs no stack."""
    todo = [root]
    while todo:
        node = todo.pop()
        if isinstance(node.value, dict):
            yield node
        todo += [child for _, child in node.items()]
        todo += node.elements()


def _said(source: Source, variables: Mapping[str, Node]) -> str:
    line = min(node.place.line for node in variables.values())
    return f"{source.path}:{line}: {', '.join(variables)}: set in a section that is not read; the engine may get them"
