"""A program that trains with a class of its own in place of the framework's trainer.

    own trainer: {modules: [trl]}         # a class that the program imports from elsewhere, or makes without theirs

It takes the framework's options, and does with them what its own code says. What the framework's trainer gives to vLLM,
requests from it and computes is not known of this one, even if it inherits from the framework's in another file.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from rlaudit.configs.draft import Settings, by_code, unwritten
from rlaudit.configs.elsewhere import Elsewhere, leave_open
from rlaudit.configs.program import program_source
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.python_text import parse
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.settings.rollout_config import Loss, RolloutConfig, Setting
from rlaudit.unknown import Unknown

if TYPE_CHECKING:
    from rlaudit.dialects.reading import Reading

_TRAINER = re.compile(r"\w*Trainer(?!Callback|State|Control|Config|Arguments|Mixin)\w*")
_DEEPEST = 6


def own_trainers_of(reading: "Reading") -> tuple[str, ...]:
    """Return the trainer classes of a config's program that are not the framework's."""
    entry, tree = reading.spec.declared.get("own trainer"), reading.tree
    if entry is None or (tree.command is None and tree.python_call is None):
        return ()
    program = reading.source if tree.command is None else program_source(reading.source, tree.command)
    return own_trainers(program, tuple(entry["modules"])) if program is not None else ()


def with_own_trainer(config: RolloutConfig, reading: "Reading") -> RolloutConfig:
    """Return a config without what only the framework's trainer decides, if the program trains with its own."""
    trainers = own_trainers_of(reading)
    if not trainers:
        return config
    named = f"{' or '.join(trainers)}, which the program does not take from {reading.of},"
    reason = f"{named} decides it"
    sampling = Settings(_written(config.sampling))
    leave_open(sampling, reason)
    written = _written(config.engine)
    engine = {key: replace(setting, value=Unknown(reason), note=reason) for key, setting in written.items()}
    limit = f"what {named} hands to vLLM and computes; `rlaudit record` writes it down"
    return replace(
        config,
        engine=Elsewhere(reason, engine, limit),
        sampling=sampling,
        trainer={key: _open(fact, reason) for key, fact in config.trainer.items()},
        options={key: _open(setting, reason) for key, setting in config.options.items()},
        lost=tuple(lost for lost in config.lost if lost.loss is Loss.REFUSED),
        not_seen=(*(other for other in config.not_seen if other != getattr(config.engine, "sentence", "")), limit),
        decided={},
        write=unwritten,
    )


def _written(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    return {name: setting for name, setting in settings.items() if setting.place is not None}


def _open(setting: Setting, reason: str) -> Setting:
    return setting if setting.place is not None else by_code(setting.name, Unknown(reason), reason)


@lru_cache(maxsize=64)
def own_trainers(program: Source, modules: tuple[str, ...]) -> tuple[str, ...]:
    """Return the trainer classes of a program that are none of the framework's, nor based on one in the same file; none
    if the program names one of the framework's, too.
    """
    try:
        nodes = list(ast.walk(parse(program.text)))
    except UnreadableText:
        return ()
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    origins = {
        alias.asname or alias.name: "." * node.level + (node.module or "")
        for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names
    }  # fmt: skip

    def is_of_the_framework(name: str, depth: int = 0) -> bool:
        if name in classes and depth < _DEEPEST:
            return any(is_of_the_framework(ast.unparse(base), depth + 1) for base in classes[name].bases)
        return origins.get(name, name).partition(".")[0] in modules

    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    bases = {base.id for made in classes.values() for base in made.bases if isinstance(base, ast.Name)}
    named = sorted({*classes, *(used & origins.keys())} - bases)
    trainers = [name for name in named if _TRAINER.fullmatch(name)]
    return () if any(map(is_of_the_framework, trainers)) else tuple(trainers)
