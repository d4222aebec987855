"""Configs that a shell script writes itself, `cat > run.yaml <<EOF`, each read like a file and edited in the script.

Variables that are known from the script are filled in; a value with any other is Unknown. A document is read as YAML
under any file name, since the name is often a variable.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rlaudit.configs.source import Source
from rlaudit.configs.syntax.embedded import moved
from rlaudit.configs.syntax.node import Node
from rlaudit.unknown import Unknown

_EXPANSION = re.compile(r"\$(?:[A-Za-z_]\w*|\()")
_FEWEST_KEYS = 2
_UNTOLD = "the options of the command that reads this here-document"


@dataclass(frozen=True, eq=False)
class HereDocument(Source):
    """The file that a here-document makes. text: the whole script, to which places and edits refer."""

    document: Node | None = None
    # Sentences on the assumptions in reading it, and on what is unknown of its use.
    untold: tuple[str, ...] = ()
    # Exports at the end of the script.
    variables: Mapping[str, Node] = field(default_factory=dict)

    @property
    def suffix(self) -> str:
        """Return the suffix of YAML."""
        return ".yaml"

    @property
    def plain_yaml(self) -> tuple[Node, ...]:
        """The one document."""
        return (self.document,) if self.document is not None else ()


def here_documents(source: Source) -> tuple[HereDocument, ...]:
    """Return the YAML mappings that a shell script writes to files. Never raises."""
    text = source.text
    if not source.is_shell or "<<" not in text or not ("vllm" in text or "rollout" in text):
        return ()
    from rlaudit.configs.syntax.unreadable import UnreadableText
    from rlaudit.configs.syntax.yaml_text import parse_plain_yaml

    documents = []
    try:
        commands = source.commands
    except ValueError:
        return ()
    for command in commands:
        if command.heredoc is None or command.inside is None or not command.target:
            continue
        try:
            roots = parse_plain_yaml(str(command.heredoc.value), source.path)
        except (UnreadableText, RecursionError):
            continue
        if roots and isinstance(roots[0].value, dict) and len(roots[0].value) >= _FEWEST_KEYS:
            root, assumptions = _with_unknowns(moved(roots[0], command.inside)), (*command.assumed, _UNTOLD)
            documents.append(
                HereDocument(
                    source.path, text, source.given, document=root, untold=assumptions, variables=commands[-1].variables
                )
            )
    return tuple(documents)


def _with_unknowns(node: Node) -> Node:
    """Return the node with Unknown for texts in which an expansion is left; `${a.b}` may be the config's own."""
    value = node.value
    if isinstance(value, dict):
        return replace(node, value={key: _with_unknowns(child) for key, child in value.items()})
    if isinstance(value, tuple):
        return replace(node, value=tuple(_with_unknowns(child) for child in value))
    match = _EXPANSION.search(value) if isinstance(value, str) else None
    return node if match is None else replace(node, value=Unknown(f"{match.group()} is not told by this script"))
