"""Where a file starts a vLLM server: in shell commands, in a Dockerfile, in Python's lists of words, and in the strings
and lists of a container's or a job's YAML.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlaudit.configs.dialects.vllm.invocation import VLLM_IMAGE, Invocation, of_commands, tail
from rlaudit.configs.dotenv import beside, named_by
from rlaudit.configs.here_documents import HereDocument
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.embedded import scalar_commands, words_of
from rlaudit.configs.syntax.expansion import expanded, filled
from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.shell_command import Command

MENTION = re.compile(
    r"\bvllm\b[\"',\s\\-]{1,80}serve\b|vllm[./]entrypoints[./]|vllm[\w./-]{0,60}openai|\bvllm[\s\"]{1,9}\$"
    r"|\$\{?\w+(?:\[@\])?\}?\"?\s{1,9}serve\b"
)
# Keys whose text is prose about commands and no command.
_PROSE = {"guide", "description", "readme", "help", "note", "notes", "title", "comment", "summary", "documentation"}
_FIRST_WORDS = ("entrypoint", "command", "cmd")
_MORE_WORDS = ("args", "arguments")
_VARIABLES = ("env", "environment", "envs", "envVars", "extraEnv", "extra_env", "environment_variables")


@dataclass(frozen=True, eq=False)
class _File:
    """A YAML file, and the variables of the `.env` beside it, which compose fills in."""

    source: Source
    index: LineIndex
    given: dict[str, Node] = field(default_factory=dict)

    def commands(self, node: Node) -> tuple[Command, ...]:
        """Return the commands of a string."""
        if isinstance(self.source, HereDocument):
            return self.source.commands_in(node)
        told = {name: f"{name} is {one.value} in {one.place.path}" for name, one in self.given.items()}
        return scalar_commands(node, self.index, told)

    def named(self, node: Node) -> dict[str, Node]:
        """Return the variables of a service's `env_file:`."""
        found: dict[str, Node] = {}
        for variables in named_by(self.source, node):
            found |= variables
        return found


def invocations(source: Source) -> tuple[Invocation, ...]:
    """Return every start of a server in a file; nothing if the text does not mention one. Raises ValueError."""
    if not MENTION.search(source.text):
        return ()
    if source.suffix in {".yaml", ".yml", ".json"}:
        file = _File(source, LineIndex(source.text, source.path))
        return tuple(found for root in source.plain_yaml for found in _in_yaml(_filled_in(file, root), file))
    if is_dockerfile(source):
        from rlaudit.configs.dialects.vllm.dockerfile import dockerfile_invocations

        return dockerfile_invocations(source)
    if source.suffix == ".py":
        from rlaudit.configs.python_commands import conditional_words, python_commands
        from rlaudit.configs.python_environment import python_environment

        variables = python_environment(source, ("VLLM_", "NCCL_"), handed_on=True)
        found = [(words, tail(words), node) for words, node in python_commands(source, _names_vllm)]
        return tuple(
            Invocation(words, *started, node.place, variables, lists=_editable(words, node),
                       maybe=conditional_words(source, node, _names_vllm))
            for words, started, node in found if started
        )  # fmt: skip
    return tuple(of_commands(source.commands))


def _editable(words: tuple[Node, ...], display: Node) -> tuple[Node, ...]:
    """Return the words of a list in which flags can be written; none of one whose later part stands somewhere else."""
    told = [word for word in words[len(display.elements()) :] if not isinstance(word.value, Unknown)]
    return () if told else words


def _names_vllm(text: str) -> bool:
    return "vllm" in text


def is_dockerfile(source: Source) -> bool:
    """By its name, or by a FROM line and a CMD or ENTRYPOINT line where it has no ending of another kind."""
    name = source.path.replace("\\", "/").rpartition("/")[2].lower()
    return "dockerfile" in name or "containerfile" in name


def _filled_in(file: _File, root: Node) -> Node:
    """Return a compose file with the variables of its `.env`."""
    given = beside(file.source) if root.get("services") is not None else {}
    file.given.update(given)
    return filled(root, given) if given else root


def _in_yaml(root: Node, file: _File) -> Iterator[Invocation]:
    """Servers started by containers and jobs. Iterative: a mapping, with the variables of those around it."""
    todo: list[tuple[Node, dict[str, Node], str]] = [(root, {}, "")]
    while todo:
        node, variables, key = todo.pop()
        if isinstance(node.value, dict):
            variables = {**variables, **file.named(node), **listed_variables(node)}
            found, read = _container(node, file, variables)
            yield from found
            children = [(child, variables, name) for name, child in node.items() if name not in read]
            todo += reversed(children)
        elif isinstance(node.value, tuple):
            found = _listed(node.elements(), file, variables, node)
            yield from found
            if not found:
                todo += [(child, variables, key) for child in reversed(node.elements())]
        elif isinstance(node.value, str) and key.lower() not in _PROSE:
            yield from _script(node, file, variables)


def _container(node: Node, file: _File, variables: Mapping[str, Node]) -> tuple[list[Invocation], frozenset[str]]:
    """Return the server of one container, from `entrypoint`, `command` and `args`, and the keys it was read from."""
    keys = [key for key in (*_FIRST_WORDS, *_MORE_WORDS) if node.get(key) is not None]
    parts = [part for key in keys if (part := node.get(key)) is not None and part.value is not None]
    image = node.get("image")
    is_vllm = image is not None and isinstance(image.value, str) and bool(VLLM_IMAGE.search(image.value))
    if not parts:
        return [], frozenset()
    words: list[Node] = []
    shell: Command | None = None
    for part in parts:
        if part.elements():
            scripts = [one for one in part.elements() if _is_script(one)]
            if scripts:
                found = [found for one in scripts for found in _script(one, file, variables)]
                return found, frozenset(keys) if found else frozenset()
            words += map(expanded, words_of(part.elements()))
        elif isinstance(part.value, str):
            commands = file.commands(part)
            found = [replace(one, variables={**variables, **one.variables}) for one in of_commands(commands)]
            if found:
                return [replace(one, image=image) for one in found], frozenset(keys)
            if commands:
                words += commands[0].words
                shell = commands[0]
    started = tail(words)
    if started is None and is_vllm and any(str(word.value).startswith("--") for word in words):
        started = (0, True)
    if started is None:
        return [], frozenset()
    lists = tuple(map(expanded, words_of(parts[-1].elements()))) if shell is None or parts[-1].elements() else ()
    command = replace(shell, words=tuple(words)) if shell is not None and not lists else None
    place = parts[0].place
    return [Invocation(tuple(words), *started, place, variables, command, lists, image=image)], frozenset(keys)


def _listed(elements: Sequence[Node], file: _File, variables: Mapping[str, Node], node: Node) -> list[Invocation]:
    """Return a server whose words are a list under any other key."""
    if any(_is_script(one) for one in elements) or any(isinstance(one.value, dict | tuple) for one in elements):
        return []
    words = tuple(map(expanded, words_of(elements)))
    started = tail(words)
    return [Invocation(words, *started, node.place, variables, lists=words)] if started else []


def _is_script(node: Node) -> bool:
    return isinstance(node.value, str) and bool(re.search(r"\s", node.value.strip()) and MENTION.search(node.value))


def _script(node: Node, file: _File, variables: Mapping[str, Node]) -> list[Invocation]:
    """Servers of a shell script that is one string; Markdown is prose."""
    if not _is_script(node) or "```" in node.value:
        return []
    found = of_commands(file.commands(node))
    return [replace(one, variables={**variables, **one.variables}) for one in found]


def listed_variables(node: Node) -> dict[str, Node]:
    """`env` of a container: a list of name and value, a list of `A=b`, or a mapping, with what is filled in."""
    found: dict[str, Node] = {}
    for key in _VARIABLES:
        listed = node.get(key)
        if listed is None:
            continue
        found.update({name: expanded(child) for name, child in listed.items()})
        for element in listed.elements():
            name = element.get("name")
            if name is not None and isinstance(name.value, str):
                value, elsewhere = element.get("value"), element.get("valueFrom")
                if value is not None:
                    found[name.value] = expanded(value)
                elif elsewhere is not None:
                    found[name.value] = replace(elsewhere, value=Unknown("valueFrom: it is kept in the cluster"))
            elif isinstance(element.value, str) and "=" in element.value:
                left, _, right = element.value.partition("=")
                found[left] = expanded(replace(element, value=right))
    return found
