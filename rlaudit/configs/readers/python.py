"""Python that builds a vLLM engine: `LLM(...)`, `EngineArgs(...)`, `AsyncEngineArgs(...)` and `SamplingParams(...)`.

Literals, constants, f-strings of them and literal dictionaries are read. Everything else is decided when the program
runs, and is unknown with the reason: `rlaudit record` writes down what a run gives its engine. A keyword that the
release does not have is a TypeError at start. `LLM` is an in-process engine, the others may be served. No argument is
known of an engine that the program's own command line sets up (`EngineArgs.from_cli_args(args)`), or that vLLM's server
builds in the program (`run_server(args)`).
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.draft import Draft, by_file, unwritten
from rlaudit.configs.elsewhere import as_written, leave_open
from rlaudit.configs.engine_arguments.flags import take_variables
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.call_edits import call_writer
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.spelling import Spell
from rlaudit.settings.rollout_config import Loss, RolloutConfig
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue, known_versions
from rlaudit.vllm.lifetimes import lifetime
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_calls import Call

NAME = "vllm-python"
ENGINES = ("LLM", "EngineArgs", "AsyncEngineArgs")
FROM_COMMAND_LINE = "from_cli_args"
# vLLM's own server inside a program: its parser, and the functions that take the parsed arguments.
SERVERS = ("make_arg_parser", "run_server", "run_server_worker", "build_async_engine_client")
_ENTRYPOINTS = "vllm.entrypoints."
SAMPLING = "SamplingParams"
# Arguments of LLM.__init__ of 0.8.5 and 0.18.1 that may be passed without a name, in order.
_POSITIONAL = ("model",)
# How a program puts its actors into a placement group.
_PLACED = "PlacementGroupSchedulingStrategy("
# Only calls that sample request them; `prompt_logprobs` is of calls that score.
_LOGPROBS = "logprobs"
NO_SAMPLING = "sampling parameters were not seen: this file has no SamplingParams(...)"
_LLM_ONLY = {"hf_token", "compilation_config", "use_tqdm_on_load", "chat_template"}


# Calls that make the engine itself. vLLM chooses batch sizes by this, the usage context (AsyncLLM.from_engine_args of
# vllm/v1/engine/async_llm.py, and vllm/engine/arg_utils.py).
_MADE = re.compile(r"\b(?:from_engine_args|from_vllm_config|AsyncLLM|AsyncLLMEngine|LLMEngine)\(")
# V1's own class, of vllm/v1/engine/async_llm.py, and the one that is whichever engine runs.
_OF_V1 = re.compile(r"(?<!\w)AsyncLLM(?:\.from_\w+)?\(")
_OF_EITHER = "AsyncLLMEngine"
# Calls and values that make the engine in vLLM's own way.
_OF_VLLM = re.compile(r"\bOPENAI_API_SERVER\b|\bLLM_CLASS\b|\bbuild_async_engine_client|\brun_server|(?<!\w)LLM\(")


def recognise(source: Source) -> bool:
    """Return whether a Python file that imports vLLM calls one of its engine classes."""
    if source.suffix != ".py" or "vllm" not in source.text:
        return False
    try:
        return any(_builds(call) for call in calls_of(source))
    except (ValueError, RecursionError):
        return False


def _builds(call: "Call") -> bool:
    if call.name in SERVERS:
        return call.origin.startswith(_ENTRYPOINTS)
    if call.name == FROM_COMMAND_LINE:
        return call.origin.partition(".")[0] == "vllm"
    return call.name in ENGINES and _is_vllm(call)


def _is_vllm(call: "Call") -> bool:
    """Return whether the call is of vLLM's class and not of another `LLM`: by its import, else by its arguments."""
    if call.origin:
        return call.origin.partition(".")[0] == "vllm"
    if call.name != "LLM":
        return True
    arguments = Catalogue.at(known_versions()[-1]).engine
    return bool(call.open) or bool(call.positional) or any(name in arguments for name in call.arguments)


def calls_of(source: Source) -> "tuple[Call, ...]":
    """Return the calls of engines, sampling parameters and weight updates."""
    # Reading Python costs start-up time that other files should not pay.
    from rlaudit.configs.engine_arguments.weight_updates import METHODS

    return source.calls((*ENGINES, FROM_COMMAND_LINE, *SERVERS, SAMPLING, *METHODS))


def engines_of(source: Source) -> "list[Call]":
    """Return the calls that build an engine. Calls of vLLM's server are one engine, if the program builds no other."""
    built = [call for call in calls_of(source) if _builds(call)]
    return [call for call in built if call.name not in SERVERS] or built[:1]


def sampled_in(source: Source) -> "list[Call]":
    """Return the calls of vLLM's SamplingParams."""
    home = {"", "vllm"}
    return [call for call in calls_of(source) if call.name == SAMPLING and call.origin.partition(".")[0] in home]


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """Return every engine that the file builds, each with the sampling parameters of its function or module."""
    engines = engines_of(source)
    # Which of several engines a program that imports the file uses is not followed.
    files = (source, *(source.way.programs if len(engines) == 1 else ()))
    calls = tuple(call for file in files for call in calls_of(file))
    sampled = sampled_in(source) or [call for file in files for call in sampled_in(file)]
    return tuple(engine_config(files, call, calls, sampled, vllm) for call in engines)


def _as_open(call: "Call") -> "Call":
    """Return a call with all arguments open if it takes the program's command line."""
    if call.name in SERVERS:
        return replace(call, arguments={}, positional=(), open="what the program hands to vLLM's server decides them")
    if call.name != FROM_COMMAND_LINE:
        return call
    return replace(call, arguments={}, positional=(), open="the command line of the program decides them")


def engine_config(
    files: Sequence[Source], call: "Call", calls: "Iterable[Call]", sampled: "Iterable[Call]", vllm: Version
) -> RolloutConfig:
    """Return the engine that `call` builds.

    files: that of the call, and programs that import it. calls: all that they make. sampled: their SamplingParams.
    """
    # Reading Python costs start-up time that other files should not pay.
    from rlaudit.configs.engine_arguments.weight_updates import posted, take_weight_updates
    from rlaudit.configs.framework_source.version_guards import version_guards
    from rlaudit.configs.local_modules import given_the_engine
    from rlaudit.configs.lost_updates import lost_updates
    from rlaudit.configs.passed_values import passed
    from rlaudit.configs.python_environment import python_environment

    call = _as_open(call)
    # What reaches into an engine is the LLM's if the file builds one: no variable keeps another in the program.
    of_others = call.name != "LLM" and any(other.name == "LLM" for other in calls)
    source = files[0]
    functions = () if of_others else tuple(function for file in files for function in given_the_engine(file))
    reached_into = () if of_others else tuple(update for file in (*files, *functions) for update in lost_updates(file))
    guards = tuple(guard for file in files for guard in version_guards(file, None, vllm))
    draft = Draft(NAME, source.path, lost_updates=reached_into, version_guards=guards)
    catalogue = Catalogue.at(vllm)
    arguments = passed(files, call, dict(zip(_POSITIONAL, call.positional, strict=False)) | call.arguments)
    model = arguments.pop("model", None)
    for name, node in arguments.items():
        _argument(draft, call, name, node, catalogue)
    if len(call.positional) > 1:
        where = f"in line {call.place.line}"
        draft.not_seen.append(f"arguments of {call.name} {where} that are passed without a name were not read")
    if call.open:
        further = f"further arguments of {call.name} in line {call.place.line} are not known: {call.open}"
        draft.not_seen.append(f"{further}; `rlaudit record` shows them")
    beside = [sampling for sampling in sampled if sampling.function in {call.function, ""}]
    collect_sampling(draft, beside or list(sampled), catalogue)
    take_variables(draft, python_environment(source))
    of_functions = (call for function in functions for call in calls_of(function))
    requests = (request for file in files for request in posted(file))
    take_weight_updates(draft, files, (*calls, *of_functions, *requests), offline=call.name == "LLM")
    # The functions that make an engine do not take its keywords.
    is_class = call.name in ENGINES
    draft.bare = is_class and makes_bare_engine(source.text)
    of_v1 = _OF_EITHER not in source.text and _OF_V1.search(source.text) is not None
    draft.needs_v1 = of_v1 and call.name != "LLM"
    write = call_writer(call, _speller(catalogue), source.text) if is_class else unwritten
    config = draft.done(model=model, offline=call.name == "LLM", place=call.place, write=write)
    parts = tuple(dict.fromkeys(file.path for file in (*files[1:], *functions)))
    config = replace(config, placed_by_ray=call.is_actor and _PLACED in source.text, parts=(*config.parts, *parts))
    return replace(config, engine=as_written(config.engine, call.name)) if call.open else config


def makes_bare_engine(text: str) -> bool:
    """Return whether a Python file makes the engine only by its class."""
    return _MADE.search(text) is not None and _OF_VLLM.search(text) is None


def _argument(draft: Draft, call: "Call", name: str, node: Node, catalogue: Catalogue) -> None:
    is_known = lifetime("engine", name) is not None
    if name in catalogue.engine or (is_known and not call.may_leave_out(name)):
        draft.engine.by_file(name, node)
    elif is_known:
        why = f"vLLM {catalogue.asked} has no such argument, and a test around {call.name} may leave it out"
        draft.not_seen.append(f"{name} in line {node.place.line} was not read: {why}")
    elif name in call.own:
        draft.not_seen.append(f"{name} was not read: a subclass of {call.name} in this file takes it for itself")
    elif name not in _LLM_ONLY:
        draft.lose(name, node, Loss.REFUSED, f"TypeError at start: {call.name} has no argument {name}")


def _leaves_out(call: "Call", name: str) -> bool:
    return not call.open and not call.positional and name not in call.arguments


def collect_sampling(draft: Draft, sampled: "list[Call]", catalogue: Catalogue) -> None:
    """Add the sampling parameters; Unknown if calls differ.

    If some calls request logprobs, the others are no training rollouts but an evaluation or a judge, and are only
    listed. Which of several calls scores the samples of another one is not decided here.
    """
    asking = [call for call in sampled if _LOGPROBS in call.arguments]
    others = [call for call in sampled if call not in asking] if asking else []
    if others:
        where = _lines(draft.path, others, ", ")
        draft.not_seen.append(f"{SAMPLING} in line {where} was not read: it requests no logprobs, as a rollout would")
    sampled = asking or sampled
    differing = f"{SAMPLING} in lines {_lines(draft.path, sampled, ' and ')} differ"
    for call in sampled:
        for name, node in call.arguments.items():
            if name not in catalogue.sampling and lifetime("sampling", name) is None:
                reason = f"TypeError: SamplingParams has no argument {name}"
                draft.lose(name, node, Loss.REFUSED, reason)
                continue
            setting = by_file(name, node)
            earlier = draft.sampling.get(name)
            if earlier is not None and earlier.value != setting.value:
                differ = Unknown(f"{differing} in {name}", hangs_on=differing)
                setting = by_file(name, node, differ)
            draft.sampling[name] = setting
        if call.open:
            where = f"in line {call.place.line}"
            draft.not_seen.append(f"further sampling parameters {where} are not known: {call.open}")
            leave_open(draft.sampling, call.open)
    for name, setting in list(draft.sampling.items()):
        declared = catalogue.sampling.get(name)
        default = NEUTRAL_SAMPLING.get(name, declared.default if declared is not None else None)
        if setting.known and setting.value != default and any(_leaves_out(call, name) for call in sampled):
            differ = Unknown(f"{differing} in {name}: not all of them set it", hangs_on=differing)
            draft.sampling[name] = replace(setting, value=differ)
    if not sampled:
        draft.not_seen.append(NO_SAMPLING)


def _lines(path: str, calls: "Iterable[Call]", and_: str) -> str:
    """Return the lines of calls, with the file if it is not the one at a path."""
    places = (call.place for call in calls)
    return and_.join(str(place.line) if place.path == path else f"{place.path}:{place.line}" for place in places)


def _speller(catalogue: Catalogue) -> Spell:
    def spell(name: str, value: Any) -> tuple[str, str] | None:
        if name not in catalogue.engine:
            return None
        return (name, json.dumps(value)) if isinstance(value, str) else (name, repr(value))

    return spell


DIALECT = Dialect(NAME, "Python with vLLM's LLM or EngineArgs", 0, recognise, read)
