"""Configs that a shell script writes itself, `cat > run.yaml <<EOF`, each read like a file and edited in the script;
and the manifests that it hands to a cluster, `kubectl apply -f - <<EOF`, with the commands in them.

Variables that are known from the script are filled in; a value with any other is Unknown. A document is read as YAML
under any file name, since the name is often a variable.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from rlaudit.configs.source import Source
from rlaudit.configs.syntax.embedded import moved, scalar_origins
from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.shell_command import Command

_EXPANSION = re.compile(r"\$(?:[A-Za-z_]\w*|\()")
_FEWEST_KEYS = 2
_CLUSTERS = {"kubectl", "oc"}
_APPLY = {"apply", "create", "replace"}
_UNTOLD = "the options of the command that reads this here-document"


@dataclass(frozen=True, eq=False)
class HereDocument(Source):
    """The file that a here-document makes. text: the whole script, to which places and edits refer. untold: what was
    assumed in reading it, and what is not known of its use, in sentences. variables: exports at the end of the script,
    which a cluster does not see. written: the text of the document. inside: where its characters stand. applied:
    whether it goes to a cluster instead of into a file.
    """

    document: Node | None = None
    untold: tuple[str, ...] = ()
    variables: Mapping[str, Node] = field(default_factory=dict)
    written: str = ""
    inside: LineIndex | None = None
    applied: bool = False

    @property
    def suffix(self) -> str:
        """Return the suffix of YAML."""
        return ".yaml"

    @property
    def plain_yaml(self) -> tuple[Node, ...]:
        """The one document."""
        return (self.document,) if self.document is not None else ()

    def commands_in(self, node: Node) -> tuple[Command, ...]:
        """Return the commands of a string of the document. Raises UnreadableText."""
        # Reading shell costs start-up time that other files should not pay.
        from rlaudit.configs.syntax.shell_text import commands

        if self.inside is None or not isinstance(node.value, str):
            return ()
        return commands(node.value, self.path, self.inside.part(self._scripts.get(node.place.start, [])))

    @cached_property
    def _scripts(self) -> dict[int, list[int]]:
        """Return where each character of every string of several lines stands, by the string's place in the file."""
        from rlaudit.configs.syntax.yaml_text import parse_plain_yaml

        found: dict[int, list[int]] = {}
        waiting = list(parse_plain_yaml(self.written, self.path))
        while waiting and self.inside is not None:
            node = waiting.pop()
            waiting += [*node.elements(), *dict(node.items()).values()]
            if isinstance(node.value, str):
                origins = [self.inside.offset(at) for at in scalar_origins(self.written, node)]
                found[self.inside.offset(node.place.start)] = origins
        return found


def here_documents(source: Source) -> tuple[HereDocument, ...]:
    """The YAML mappings that a script writes to files; nothing for a file of another kind, and never an error."""
    text = source.text
    if not source.is_shell or "<<" not in text or not ("vllm" in text or "rollout" in text):
        return ()
    from rlaudit.configs.syntax.unreadable import UnreadableText
    from rlaudit.configs.syntax.yaml_text import parse_plain_yaml

    found = []
    try:
        commands = source.commands
    except ValueError:
        return ()
    for command in commands:
        applied = _is_applied(command)
        if command.heredoc is None or command.inside is None or not (command.target or applied):
            continue
        try:
            roots = parse_plain_yaml(str(command.heredoc.value), source.path)
        except (UnreadableText, RecursionError):
            continue
        if roots and isinstance(roots[0].value, dict) and len(roots[0].value) >= _FEWEST_KEYS:
            root = _told(moved(roots[0], command.inside), applied)
            said = command.assumed if applied else (*command.assumed, _UNTOLD)
            exports = {} if applied else commands[-1].variables
            written = str(command.heredoc.value)
            found.append(
                HereDocument(source.path, text, source.given, document=root, untold=said, variables=exports,
                             written=written, inside=command.inside, applied=applied)
            )  # fmt: skip
    return tuple(found)


def _is_applied(command: Command) -> bool:
    """Return whether a command hands its input to a cluster."""
    words = [word.value for word in command.words]
    return words[0] in _CLUSTERS and "-" in words and not _APPLY.isdisjoint(str(word) for word in words[1:])


def _told(node: Node, applied: bool) -> Node:
    """A node whose texts with an expansion left in them are Unknown; `${a.b}` may be the config's own, and several
    words of a manifest are a script, with variables of its own.
    """
    value = node.value
    if isinstance(value, dict):
        return replace(node, value={key: _told(child, applied) for key, child in value.items()})
    if isinstance(value, tuple):
        return replace(node, value=tuple(_told(child, applied) for child in value))
    left = _EXPANSION.search(value) if isinstance(value, str) and not (applied and len(value.split()) > 1) else None
    return node if left is None else replace(node, value=Unknown(f"{left.group()} is not told by this script"))
