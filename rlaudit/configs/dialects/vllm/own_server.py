"""A project's own program that takes vLLM's flags: `python serve.py --enable-lora`, whose parser vLLM fills.

Such a program calls `add_cli_args` of an engine-argument class, or vLLM's `make_arg_parser`, and builds the engine of
what was parsed. Its own options beside vLLM's are no error. What it sets itself afterwards is not told by its command.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from packaging.version import Version

from rlaudit.configs.dialects.vllm.invocation import Invocation, tail
from rlaudit.configs.draft import Draft
from rlaudit.configs.framework_source.checkout import shown
from rlaudit.configs.program import program_of, program_source
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.shell_command import Command, passed
from rlaudit.configs.usage_context import makes_bare_engine
from rlaudit.vllm.resolution.engine import VARIABLE, has_v0

_ADDS, _PARSER = "add_cli_args", "make_arg_parser"
# Flags that a script without the word vllm may give to such a program.
MENTION = re.compile(r"--(?:gpu[-_]memory[-_]|tensor[-_]parallel[-_]|max[-_]model[-_]|max[-_]num[-_]|enforce[-_]eager)")
_SWITCHES = {"store_true", "store_false", "store_const", "count", "help", "version"}
_SET_BY_NAME = 3
_V1 = "vllm.v1.engine."
_MAKERS = ("AsyncLLM", "LLMEngine", "from_engine_args", "from_vllm_config")


@dataclass(frozen=True, eq=False)
class OwnServer:
    """What the program's file tells.

    options: its own options, by name with underscores, and whether one takes no value. sets: engine arguments that the
    program decides, with the line. lenient: whether it passes over flags that nobody knows. offline: whether the engine
    is an in-process `LLM`. makes_v1: whether it makes the engine of V1 by its own class.
    """

    program: Source
    options: Mapping[str, bool]
    sets: Mapping[str, str]
    lenient: bool
    offline: bool
    makes_v1: bool


def own_servers(source: Source) -> Iterator[Invocation]:
    """The starts of such programs by a shell script, where their files are there."""
    if not (MENTION.search(source.text) or "vllm" in source.text.lower()):
        return
    for command in source.commands:
        program = program_of(command)
        if not program or program.startswith("vllm.") or tail(command.words) is not None:
            continue
        found = program_source(source, command)
        own = _own_server(found) if found is not None else None
        if own is not None:
            yield _started(command, program, own)


def _started(command: Command, program: str, own: OwnServer) -> Invocation:
    start = next(at for at, word in enumerate(command.words, 1) if word.value == program)
    variables = {**passed(command.words[:start]), **command.variables}
    return Invocation(command.words, start, False, command.place, variables, command, own=own)


def _own_server(program: Source) -> OwnServer | None:
    """None where the program's parser is not filled by vLLM, or what was parsed does not reach an engine."""
    if program.suffix != ".py" or not any(name in program.text for name in (_ADDS, _PARSER)):
        return None
    # Reading Python costs start-up time that other files should not pay.
    from rlaudit.configs.dialects.vllm.python import ENGINES, FROM_COMMAND_LINE
    from rlaudit.configs.syntax.python_text import parse

    try:
        calls = program.calls((_ADDS, _PARSER, FROM_COMMAND_LINE, *ENGINES))
    except (ValueError, RecursionError):
        return None
    ours = [call for call in calls if call.origin.partition(".")[0] == "vllm"]
    # LLM(**vars(args)) takes all; LLM(model=args.model) takes what it names.
    built = [call for call in ours if call.name == FROM_COMMAND_LINE or (call.name in ENGINES and call.open)]
    parses = [call for call in ours if call.name in (_ADDS, _PARSER)]
    if not parses or not (built or any(call.name == _PARSER for call in parses)):
        return None
    nodes = tuple(sorted(ast.walk(parse(program.text)), key=lambda node: getattr(node, "lineno", 0)))
    named = {name: call.place.line for call in built if call.name in ENGINES for name in call.arguments}
    return OwnServer(
        program,
        dict(own_options(nodes)),
        {name: f"{shown(program.path)}:{line} decides it" for name, line in {**dict(stores(nodes)), **named}.items()},
        "parse_known_args" in program.text,
        any(call.name == "LLM" for call in built),
        any(call.origin.startswith(_V1) for call in program.calls(_MAKERS)),
    )


def own_options(nodes: tuple[ast.AST, ...]) -> Iterator[tuple[str, bool]]:
    """Options that a program adds to its parser itself, by name with underscores, and whether one takes no value."""
    for node in nodes:
        if not (isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument"):
            continue
        action = next((ast.unparse(one.value).strip("'\"") for one in node.keywords if one.arg == "action"), "")
        both = action.endswith("BooleanOptionalAction")
        for text in map(_text, node.args):
            if text.startswith("-"):
                name = text.lstrip("-").replace("-", "_")
                yield name, both or action in _SWITCHES
                if both:
                    yield f"no_{name}", True


def stores(nodes: tuple[ast.AST, ...]) -> Iterator[tuple[str, int]]:
    """`args.name = ...`, `setattr(args, "name", ...)`, `parser.set_defaults(name=...)`."""
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AugAssign):
            for target in node.targets if isinstance(node, ast.Assign) else (node.target,):
                if isinstance(target, ast.Attribute) and getattr(target.value, "id", "self") != "self":
                    yield target.attr, node.lineno
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name == "setattr" and len(node.args) == _SET_BY_NAME and _text(node.args[1]):
                yield _text(node.args[1]), node.lineno
            elif name == "set_defaults":
                yield from ((one.arg, node.lineno) for one in node.keywords if one.arg is not None)


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def variables_of(own: OwnServer, given: Mapping[str, Node], vllm: Version) -> dict[str, Node]:
    """The variables of the process: those of its command, and those that the program sets itself. Which of two values
    holds is open: `setdefault` leaves that of the command. So is which engine runs where the program makes that of V1
    and asks for V0: V1's refuses to be made (0.8.5 vllm/v1/engine/async_llm.py:76).
    """
    from rlaudit.configs.python_environment import python_environment

    found = dict(given)
    for name, node in python_environment(own.program).items():
        before = found.get(name)
        differs = Unknown(f"the command and {shown(own.program.path)} set it differently")
        found[name] = node if before is None or before.value == node.value else replace(node, value=differs)
    asked = found.get(VARIABLE)
    if asked is not None and asked.value == "0" and has_v0(vllm) and own.makes_v1:
        maker = f"{shown(own.program.path)} makes the engine of V1"
        why = f"{VARIABLE}=0 asks for V0, and {maker}, which refuses to be made then"
        found[VARIABLE] = replace(asked, value=Unknown(why))
    return found


def take_program(draft: Draft, own: OwnServer, arguments: Mapping[str, object]) -> None:
    """What the program decides beside its flags: arguments that it sets, and how it updates weights."""
    from rlaudit.configs.dialects.vllm.weight_updates import METHODS, take_weight_updates

    draft.parts = (*draft.parts, own.program.path)
    draft.bare = makes_bare_engine(own.program.text)
    for name, why in own.sets.items():
        if name not in arguments:
            continue
        setting = draft.engine.get(name)
        if setting is None:
            draft.engine.by_code(name, Unknown(why), why)
        else:
            draft.engine[name] = replace(setting, value=Unknown(why), note=why)
    take_weight_updates(draft, own.program, own.program.calls(METHODS), offline=own.offline)
