"""A Python program whose engine another file of the project builds: `from own.engine import start`, and the loop here.

Followed are the program's imports, as far as they lead to files of the tree, and what it hands to the function that
builds the engine. Sampling parameters are those of the program itself; where it has none, of a function that it names.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.vllm.flags import take_variables
from rlaudit.configs.dialects.vllm.python import DIALECT as ONE_FILE
from rlaudit.configs.dialects.vllm.python import (
    NO_SAMPLING,
    calls_of,
    collect_sampling,
    engine_config,
    engines_of,
    sampled_in,
)
from rlaudit.configs.draft import Draft, unwritten
from rlaudit.configs.handed_arguments import with_handed
from rlaudit.configs.program import words_of
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.vllm.catalogue import Catalogue

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_calls import Call

NAME = "vllm-program"
_EVALUATES = {"eval", "evaluate", "evaluation", "validate", "validation", "test", "baseline"}


def recognise(source: Source) -> bool:
    """Whether a Python file builds no engine itself, and names a function or class of a file it loads that does."""
    return source.suffix == ".py" and not ONE_FILE.recognise(source) and bool(_builders(source, _loaded(source)))


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """The engines that the program has built for it."""
    loaded = _loaded(source)
    return tuple(_config(source, helper, loaded, call, vllm)
                 for helper, built in _builders(source, loaded) for call in built)  # fmt: skip


def _loaded(source: Source) -> list[Source]:
    # Reading Python costs start-up time that other files should not pay.
    from rlaudit.configs.framework_source.program_imports import imported_by

    return [file for file in imported_by(source) if "vllm" in file.text]


def _builders(source: Source, loaded: Sequence[Source]) -> "list[tuple[Source, list[Call]]]":
    """The files with the calls that build an engine in a function, or in a class, that the program names; where it
    names none, that another file it loads does.
    """
    building = [(file, engines_of(file)) for file in loaded if ONE_FILE.recognise(file)]
    for readers in ([source], loaded):
        found = []
        for file, engines in building:
            said = {name for reader in readers if reader is not file for name in _names(reader)}
            if named := [call for call in engines if said & {call.function, call.owner} - {"", "__init__"}]:
                found.append((file, named))
        if found:
            return found
    return []


def _names(source: Source) -> Iterator[str]:
    """What a file names in its code; an import alone uses nothing."""
    from rlaudit.configs.framework_source.bindings import nodes_in

    for node in nodes_in(source):
        if isinstance(node, ast.Name | ast.Attribute):
            yield node.id if isinstance(node, ast.Name) else node.attr


def _sampled(source: Source, helper: Source, loaded: Sequence[Source]) -> "tuple[Source, list[Call]] | None":
    """The first file with sampling parameters, and these: the program, else one whose function it names. Where only
    functions that evaluate are left, those of the file with the engine go before, named or not.
    """
    said = set(_names(source))
    files = [source, helper, *(file for file in loaded if file is not helper)]
    named = [(file, [call for call in sampled_in(file) if file is source or said & {call.function, call.owner}])
             for file in files]  # fmt: skip
    rollouts = [(file, [call for call in calls if not _EVALUATES & words_of(call.function)]) for file, calls in named]
    for file, calls in (*rollouts, (helper, sampled_in(helper)), *named):
        if calls:
            return file, [call if file is source else with_handed(call, file, source) for call in calls]
    return None


def _config(source: Source, helper: Source, loaded: Sequence[Source], call: "Call", vllm: Version) -> RolloutConfig:
    """The helper's engine with what the program and the other files say of sampling, weights and the loss."""
    from rlaudit.configs.dialects.vllm.own_loss import take_own_loss
    from rlaudit.configs.dialects.vllm.posted import posted
    from rlaudit.configs.dialects.vllm.weight_updates import take_weight_updates
    from rlaudit.configs.python_environment import python_environment

    engine = with_handed(call, helper, source)
    config = engine_config(helper, engine, calls_of(helper), sampled_in(helper), vllm)
    sampled = _sampled(source, helper, loaded)
    draft = Draft(NAME, source.path)
    if sampled is not None:
        collect_sampling(draft, sampled[1], Catalogue.at(vllm))
    take_own_loss(draft, source)
    take_variables(draft, python_environment(source))
    files = (source, helper, *(file for file in loaded if file is not helper))
    calls = [call for file in files for call in (*calls_of(file), *posted(file))]
    take_weight_updates(draft, source, calls, offline=config.offline)
    return replace(
        config,
        framework=NAME,
        path=source.path,
        sampling=dict(draft.sampling),
        environment={**config.environment, **draft.environment},
        trainer=dict(draft.trainer),
        lost=(*config.lost, *draft.lost),
        not_seen=tuple(one for one in (*config.not_seen, *draft.not_seen) if sampled is None or one != NO_SAMPLING),
        parts=tuple(dict.fromkeys((*config.parts, helper.path, *([sampled[0].path] if sampled is not None else ())))),
        write=unwritten,
    )


PROGRAM = Dialect(NAME, "Python program whose engine another of its files builds", 0, recognise, read)
