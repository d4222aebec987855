"""Dockerfiles: ENV, and the CMD and ENTRYPOINT that start a server.

The exec form is JSON, the shell form a script. An ENTRYPOINT in exec form gets the words of CMD appended. An image of
vLLM's own starts the server itself, so that a CMD of flags alone is a server too.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from rlaudit.configs.source import Source
from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_command import Command
from rlaudit.configs.syntax.shell_text import commands
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.configs.vllm_inputs.invocations import MENTION, VLLM_IMAGE, Invocation, of_commands, tail
from rlaudit.parse_json import parse_json

_INSTRUCTION = re.compile(r"^[ \t]*([A-Za-z]+)[ \t]+", re.MULTILINE)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
MOST_WORDS = 2_000
_KEPT = {"FROM", "ENV", "ARG", "CMD", "ENTRYPOINT", "RUN"}
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s]*)|([A-Za-z_]\w*)[ \t]+(.+)", re.DOTALL)


def is_dockerfile(source: Source) -> bool:
    """Return whether a file's name is that of a Dockerfile or a Containerfile."""
    name = source.path.replace("\\", "/").rpartition("/")[2].lower()
    return "dockerfile" in name or "containerfile" in name


def dockerfile_invocations(source: Source) -> tuple[Invocation, ...]:
    """Return the server that the last stage's ENTRYPOINT and CMD start. Raises UnreadableText."""
    if not MENTION.search(source.text):
        return ()
    index = LineIndex(source.text, source.path)
    image = Node("", index.place(0, 0, ""))
    entrypoint = command = None
    variables: dict[str, Node] = {}
    for name, start, end in _instructions(source.text):
        if name == "FROM":
            image_name = (source.text[start:end].split() or [""])[0]
            image = Node(image_name, index.place(start, start + len(image_name), ""))
            entrypoint, command, variables = None, None, {}
        elif name == "ENV":
            variables |= _variables(index, start, end)
        elif name == "ENTRYPOINT":
            entrypoint, command = (start, end), None
        elif name == "CMD":
            command = (start, end)
    return tuple(_started(index, image, entrypoint, command, variables))


def _started(
    index: LineIndex,
    image: Node,
    entrypoint: tuple[int, int] | None,
    command: tuple[int, int] | None,
    variables: dict[str, Node],
) -> Iterator[Invocation]:
    words: list[Node] = []
    last: tuple[Node, ...] = ()
    for span in (entrypoint, command):
        if span is None:
            continue
        listed = _exec_form(index, *span)
        if listed is None:
            script = _shell_form(index, *span)
            for invocation in of_commands(script):
                yield replace(invocation, variables={**variables, **invocation.variables}, image=image)
            return
        words += listed
        last = listed
    started = tail(words)
    if started is None and VLLM_IMAGE.search(str(image.value)) and entrypoint is None and words:
        started = (0, True) if str(words[0].value).startswith("-") or len(words) > 1 else None
    if started is not None:
        scripts = [word for word in words if isinstance(word.value, str) and " " in word.value]
        place = words[0].place
        lists = () if scripts and not last else last
        yield Invocation(tuple(words), *started, place, variables, None, lists, image=image)


def _shell_form(index: LineIndex, start: int, end: int) -> tuple[Command, ...]:
    """Return the commands of a script without the comment lines between its lines. Raises UnreadableText."""
    offsets: list[int] = []
    at = start
    for line in index.text[start:end].splitlines(keepends=True):
        if at == start or not line.lstrip().startswith("#"):
            offsets += range(at, at + len(line))
        at += len(line)
    script = "".join(index.text[offset] for offset in offsets)
    return commands(script, index.path, index.part([*offsets, end]))


def _instructions(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield name and argument span of every instruction that matters, continuation lines included."""
    at = 0
    while True:
        match = _INSTRUCTION.search(text, at)
        if match is None:
            return
        end = match.end()
        while True:
            newline = text.find("\n", end)
            line_end = len(text) if newline < 0 else newline
            line = text[end:line_end].rstrip()
            end = line_end
            comment = line.lstrip().startswith("#") and end < len(text)
            if not (line.endswith("\\") or comment) or newline < 0:
                break
            end = line_end + 1
        at = end
        if match.group(1).upper() in _KEPT:
            yield match.group(1).upper(), match.end(), match.end() + len(text[match.end() : end].rstrip())


def _exec_form(index: LineIndex, start: int, end: int) -> tuple[Node, ...] | None:
    """Return the words of `["a", "b"]`, None for the shell form."""
    text = index.text[start:end]
    if not text.startswith("["):
        return None
    words: list[Node] = []
    for match in _STRING.finditer(text):
        if len(words) > MOST_WORDS:
            raise UnreadableText(f"a command of more than {MOST_WORDS} words")
        try:
            value = parse_json(match.group())
        except ValueError:
            return None
        place = index.place(start + match.start(), start + match.end(), "")
        words.append(Node(value, place, None, match.group()))
    return tuple(words)


def _variables(index: LineIndex, start: int, end: int) -> dict[str, Node]:
    """Return the variables of `ENV A=1 B=2` or `ENV A 1`."""
    variables = {}
    for match in _ASSIGNED.finditer(index.text, start, end):
        name, value = match.group(1) or match.group(3), match.group(2) if match.group(1) else match.group(4)
        first = match.start(2) if match.group(1) else match.start(4)
        plain = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
        variables[name] = Node(plain, index.place(first, first + len(value), name), None, value)
    return variables
