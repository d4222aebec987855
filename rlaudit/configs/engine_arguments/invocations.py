"""The starts of vLLM servers in a file: in shell commands, and in strings and lists of a container's or job's YAML.

`vllm serve ...`, `python -m vllm.entrypoints.openai.api_server ...`, or a container of a vLLM image that gets flags.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlaudit.configs.source import Source
from rlaudit.configs.syntax.embedded import scalar_commands, words_of
from rlaudit.configs.syntax.expansion import expanded
from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_command import Command, passed
from rlaudit.settings.place import Place
from rlaudit.unknown import Unknown

_MENTION = re.compile(
    r"\bvllm\b[\"',\s\\-]{1,80}serve\b|vllm[./]entrypoints[./]|vllm[\w./-]{0,60}openai|\bvllm[\s\"]{1,9}\$"
    r"|\$\{?\w+(?:\[@\])?\}?\"?\s{1,9}serve\b"
)
# Keys whose text describes commands and is none.
_PROSE = {"guide", "description", "readme", "help", "note", "notes", "title", "comment", "summary", "documentation"}
_FIRST_WORDS = ("entrypoint", "command", "cmd")
_MORE_WORDS = ("args", "arguments")
_VARIABLES = ("env", "environment", "envs", "envVars", "extraEnv", "extra_env", "environment_variables")
_MODULE = re.compile(r"vllm\.entrypoints\.(openai\.)?api_server$|.*vllm/entrypoints/(openai/)?api_server\.py$")
_VLLM_IMAGE = re.compile(r"(^|/)vllm[-\w]*(/vllm[-\w]*)?(:|@|$)|vllm-openai|vllm/vllm")
_CONTAINERS = {"docker", "podman", "nerdctl", "singularity", "apptainer"}
_IMAGE = re.compile(r"\w[\w.:-]*(?:/[\w.-]+)+(?:[:@][\w.:-]+)?")
_LAUNCHER = re.compile(r"(^|/)(vllm)$")
# With these vLLM prints something and ends; --help takes the name of a flag or a group in newer releases.
_PRINTS = re.compile(r"--help(=|$)|-h$|--version$")


@dataclass(frozen=True, eq=False)
class Invocation:
    """One start of a server."""

    # words[start:] are its flags and the model.
    words: tuple[Node, ...]
    start: int
    # Whether it is `vllm serve`, where the model is positional.
    serve: bool
    place: Place
    variables: Mapping[str, Node] = field(default_factory=dict)
    # The shell command, if it is one.
    command: Command | None = None
    # The words of the last YAML or JSON list, if the words are elements of lists.
    lists: tuple[Node, ...] = ()
    # Of the container that runs it, None if none is named.
    image: Node | None = None
    # The files of its variables, None if none is named.
    env_file: Node | None = None


def invocations(source: Source) -> tuple[Invocation, ...]:
    """Return every start of a server in a file; nothing if the text does not mention one. Raises ValueError."""
    if not _MENTION.search(source.text):
        return ()
    if source.suffix in {".yaml", ".yml", ".json"}:
        index = LineIndex(source.text, source.path)
        return tuple(invocation for root in source.plain_yaml for invocation in _in_yaml(root, index))
    return tuple(of_commands(source.commands))


def _in_yaml(root: Node, index: LineIndex) -> Iterator[Invocation]:
    """Yield the servers that containers and jobs start. Iterative, so that nesting costs no stack."""
    todo: list[tuple[Node, dict[str, Node], str]] = [(root, {}, "")]
    while todo:
        node, variables, key = todo.pop()
        if isinstance(node.value, dict):
            variables = {**variables, **listed_variables(node)}
            servers, used_keys = _container(node, index, variables)
            yield from servers
            children = [(child, variables, name) for name, child in node.items() if name not in used_keys]
            todo += reversed(children)
        elif isinstance(node.value, tuple):
            servers = _listed(node.elements(), index, variables, node)
            yield from servers
            if not servers:
                todo += [(child, variables, key) for child in reversed(node.elements())]
        elif isinstance(node.value, str) and key.lower() not in _PROSE:
            yield from _script(node, index, variables)


def _container(node: Node, index: LineIndex, variables: Mapping[str, Node]) -> tuple[list[Invocation], frozenset[str]]:
    """Return the server of one container, from `entrypoint`, `command` and `args`, and the keys it was read from."""
    keys = [key for key in (*_FIRST_WORDS, *_MORE_WORDS) if node.get(key) is not None]
    parts = [part for key in keys if (part := node.get(key)) is not None and part.value is not None]
    image, env_file = node.get("image"), node.get("env_file")
    is_vllm = image is not None and isinstance(image.value, str) and bool(_VLLM_IMAGE.search(image.value))
    if not parts:
        return [], frozenset()
    words: list[Node] = []
    shell: Command | None = None
    for part in parts:
        if part.elements():
            scripts = [script for script in part.elements() if _is_script(script)]
            if scripts:
                servers = [server for script in scripts for server in _script(script, index, variables)]
                return servers, frozenset(keys) if servers else frozenset()
            words += map(expanded, words_of(part.elements()))
        elif isinstance(part.value, str):
            commands = scalar_commands(part, index)
            servers = [
                replace(server, variables={**variables, **server.variables}, image=image, env_file=env_file)
                for server in of_commands(commands)
            ]
            if servers:
                return servers, frozenset(keys)
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
    server = Invocation(tuple(words), *started, place, variables, command, lists, image=image, env_file=env_file)
    return [server], frozenset(keys)


def _listed(elements: Sequence[Node], index: LineIndex, variables: Mapping[str, Node], node: Node) -> list[Invocation]:
    """Return a server whose words are a list under any other key."""
    if any(_is_script(element) or isinstance(element.value, dict | tuple) for element in elements):
        return []
    words = tuple(map(expanded, words_of(elements)))
    started = tail(words)
    return [Invocation(words, *started, node.place, variables, lists=words)] if started else []


def _is_script(node: Node) -> bool:
    return isinstance(node.value, str) and bool(re.search(r"\s", node.value.strip()) and _MENTION.search(node.value))


def _script(node: Node, index: LineIndex, variables: Mapping[str, Node]) -> list[Invocation]:
    """Return the servers of a shell script that is one string; none of Markdown."""
    if not _is_script(node) or "```" in node.value:
        return []
    servers = of_commands(scalar_commands(node, index))
    return [replace(server, variables={**variables, **server.variables}) for server in servers]


def listed_variables(node: Node) -> dict[str, Node]:
    """Return `env` of a container: a list of name and value, a list of `A=b`, or a mapping. Variables are filled in."""
    variables: dict[str, Node] = {}
    for key in _VARIABLES:
        listed = node.get(key)
        if listed is None:
            continue
        variables.update({name: expanded(child) for name, child in listed.items()})
        for element in listed.elements():
            name = element.get("name")
            if name is not None and isinstance(name.value, str):
                value, elsewhere = element.get("value"), element.get("valueFrom")
                if value is not None:
                    variables[name.value] = expanded(value)
                elif elsewhere is not None:
                    variables[name.value] = replace(elsewhere, value=Unknown("valueFrom: it is kept in the cluster"))
            elif isinstance(element.value, str) and "=" in element.value:
                left, _, right = element.value.partition("=")
                variables[left] = expanded(replace(element, value=right))
    return variables


def tail(words: Sequence[Node]) -> tuple[int, bool] | None:
    """Return where the server's arguments begin, and whether it is `vllm serve`; None if no server is started."""
    start = _begin(words)
    only_prints = start is not None and any(_PRINTS.match(str(word.value)) for word in words[start[0] :])
    return None if only_prints else start


def _begin(words: Sequence[Node]) -> tuple[int, bool] | None:
    texts = [word.value if isinstance(word.value, str) else "" for word in words]
    for at, text in enumerate(texts):
        following = texts[at + 1] if at + 1 < len(texts) else ""
        if following == "serve" and (_LAUNCHER.search(text) or text == "vllm.entrypoints.cli.main"):
            return at + 2, True
        if _MODULE.match(text) and (texts[at - 1] == "-m" if at and "/" not in text else True):
            return at + 1, False
    if texts and texts[0] in _CONTAINERS:
        for at, text in enumerate(texts[1:], 1):
            if _VLLM_IMAGE.search(text) and not texts[at - 1].startswith(("-v", "--volume", "--name", "--mount", "-e")):
                return at + 1, True
    return None


def of_commands(commands: Sequence[Command]) -> Iterator[Invocation]:
    """Yield the servers that shell commands start."""
    for command in commands:
        start = tail(command.words)
        if start is not None:
            variables = {**passed(command.words[: start[0]]), **command.variables}
            image = _image(command.words[: start[0]])
            yield Invocation(command.words, *start, command.place, variables, command, image=image)


def _image(words: Sequence[Node]) -> Node | None:
    """Return the image of `docker run -v OPTION IMAGE vllm serve`: the last possible word before the server."""
    if words[0].value not in _CONTAINERS:
        return None
    return next((word for word in reversed(words) if _IMAGE.fullmatch(str(word.value))), None)
