"""One start of a vLLM server, recognised by the words of a command.

`vllm serve ...`, `python -m vllm.entrypoints.openai.api_server ...`, or a container of a vLLM image that gets flags.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.place import Place
from rlaudit.configs.syntax.shell_command import Command, passed

_MODULE = re.compile(r"vllm\.entrypoints\.(openai\.)?api_server$|.*vllm/entrypoints/(openai/)?api_server\.py$")
VLLM_IMAGE = re.compile(r"(^|/)vllm[-\w]*(/vllm[-\w]*)?(:|@|$)|vllm-openai|vllm/vllm")
_CONTAINERS = {"docker", "podman", "nerdctl", "singularity", "apptainer"}
_IMAGE = re.compile(r"\w[\w.:-]*(?:/[\w.-]+)+(?:[:@][\w.:-]+)?")
_LAUNCHER = re.compile(r"(^|/)(vllm)$")
# With these vLLM prints something and ends; --help takes the name of a flag or a group in newer releases.
_ASKS = re.compile(r"--help(=|$)|-h$|--version$")


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
    # For words that are elements of a YAML or JSON list, those of the last list.
    lists: tuple[Node, ...] = ()
    # Here-documents of the same script by the file that they are written to.
    documents: Mapping[str, Command] = field(default_factory=dict)
    # Of the container that runs it, None if none is named.
    image: Node | None = None
    # The files of its variables, None if none is named.
    env_file: Node | None = None


def tail(words: Sequence[Node]) -> tuple[int, bool] | None:
    """Return where the server's arguments begin, and whether it is `vllm serve`; None if no server is started."""
    found = _begin(words)
    asks = found is not None and any(_ASKS.match(str(word.value)) for word in words[found[0] :])
    return None if asks else found


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
            if VLLM_IMAGE.search(text) and not texts[at - 1].startswith(("-v", "--volume", "--name", "--mount", "-e")):
                return at + 1, True
    return None


def of_commands(commands: Sequence[Command]) -> Iterator[Invocation]:
    """Servers started by shell commands."""
    documents: dict[str, Command] = {}
    for command in commands:
        if command.heredoc is not None and command.target:
            documents[command.target] = command
        found = tail(command.words)
        if found is not None:
            variables = {**passed(command.words[: found[0]]), **command.variables}
            image = _image(command.words[: found[0]])
            yield Invocation(
                command.words, *found, command.place, variables, command, documents=dict(documents), image=image
            )


def _image(words: Sequence[Node]) -> Node | None:
    """Return the image of `docker run -v OPTION IMAGE vllm serve`: the last word before the server that can be one."""
    if words[0].value not in _CONTAINERS:
        return None
    return next((word for word in reversed(words) if _IMAGE.fullmatch(str(word.value))), None)
