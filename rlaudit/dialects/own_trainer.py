"""A program that trains with a class of its own in place of the framework's trainer.

    own trainer: {modules: [trl]}         # a class from elsewhere that is based on none of theirs is the program's own

It takes the framework's options, and does with them what its own code says. What the framework's trainer gives to vLLM,
requests from it and computes is not known of this one.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from rlaudit.configs.draft import Settings, by_code, unwritten
from rlaudit.configs.elsewhere import Elsewhere, leave_open
from rlaudit.configs.framework_source.checkout import shown
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


@dataclass(frozen=True)
class OwnTrainer:
    """A class that is not the framework's."""

    name: str
    # The file that defines it; None if it is missing.
    source: Source | None

    def __str__(self) -> str:
        where = shown(self.source.path) if self.source is not None else "its file is not there"
        return f"{self.name} ({where})"


def own_trainers_of(reading: "Reading") -> tuple[OwnTrainer, ...]:
    """Return the trainer classes that a config's program defines itself and trains with."""
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
    reason = f"{' or '.join(trainer.name for trainer in trainers)}, no trainer of {reading.of}'s, decides it"
    sampling = Settings(_written(config.sampling))
    leave_open(sampling, reason)
    written = _written(config.engine)
    engine = {key: replace(setting, value=Unknown(reason), note=reason) for key, setting in written.items()}
    named = " or ".join(map(str, trainers))
    limit = f"what {named}, no trainer of {reading.of}'s, hands to vLLM and computes; `rlaudit record` writes it down"
    return replace(
        config,
        engine=Elsewhere(reason, engine, limit),
        sampling=sampling,
        trainer={key: _open(fact, reason) for key, fact in config.trainer.items()},
        options={key: _open(setting, reason) for key, setting in config.options.items()},
        lost=tuple(lost for lost in config.lost if lost.loss is Loss.REFUSED),
        not_seen=(*(other for other in config.not_seen if other != getattr(config.engine, "said", "")), limit),
        decided={},
        write=unwritten,
    )


def _written(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    return {name: setting for name, setting in settings.items() if setting.place is not None}


def _open(setting: Setting, reason: str) -> Setting:
    return setting if setting.place is not None else by_code(setting.name, Unknown(reason), reason)


@lru_cache(maxsize=64)
def own_trainers(program: Source, modules: tuple[str, ...]) -> tuple[OwnTrainer, ...]:
    """Return the trainer classes that a program defines itself; none if it makes one of the framework's, too."""
    names = _Names.of(program)
    if names is None:
        return ()
    used = {node.id for node in ast.walk(names.tree) if isinstance(node, ast.Name) and _TRAINER.fullmatch(node.id)}
    bases = {base.id for made in names.classes.values() for base in made.bases if isinstance(base, ast.Name)}
    trainers = [_defined(names, name, modules) for name in sorted({*used, *names.classes} - bases)
             if _TRAINER.fullmatch(name)]  # fmt: skip
    return tuple(trainer for trainer in trainers if trainer is not None) if None not in trainers else ()


@dataclass(frozen=True)
class _Names:
    """The classes and imports of a file."""

    source: Source
    tree: ast.Module
    classes: Mapping[str, ast.ClassDef]
    imports: Mapping[str, tuple[ast.ImportFrom, str]]

    @classmethod
    def of(cls, source: Source) -> "_Names | None":
        try:
            tree = parse(source.text)
        except UnreadableText:
            return None
        nodes = list(ast.walk(tree))
        classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
        imports = {
            alias.asname or alias.name: (node, alias.name)
            for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names
        }  # fmt: skip
        return cls(source, tree, classes, imports)


def _defined(names: _Names, name: str, modules: Collection[str], depth: int = 0) -> OwnTrainer | None:
    """Return the class behind a name; None if it or a base of it is the framework's."""
    if name in names.classes:
        bases = [base.id if isinstance(base, ast.Name) else ast.unparse(base) for base in names.classes[name].bases]
        is_own = all(_is_own(names, base, modules, depth) for base in bases)
        return OwnTrainer(name, names.source) if is_own else None
    if name not in names.imports:
        return None
    node, original = names.imports[name]
    module = node.module or ""
    if not node.level and module.partition(".")[0] in modules:
        return None
    for source in _files(names.source, module, node.level) if depth < _DEEPEST else ():
        inner = _Names.of(source)
        if inner is not None and (original in inner.classes or original in inner.imports):
            return _defined(inner, original, modules, depth + 1)
    return OwnTrainer(original, None)


def _is_own(names: _Names, base: str, modules: Collection[str], depth: int) -> bool:
    """Return whether a base class is certainly not the framework's."""
    if base in names.imports and base not in names.classes:
        node, _ = names.imports[base]
        if (
            not node.level
            and (node.module or "").partition(".")[0] not in modules
            and next(_files(names.source, node.module or "", 0), None) is None
        ):
            return True
    elif base not in names.classes:
        return base.partition(".")[0] not in modules and base.partition(".")[0] in {"torch", "nn", "object"}
    return depth < _DEEPEST and _defined(names, base, modules, depth + 1) is not None


def _files(source: Source, module: str, level: int) -> Iterator[Source]:
    """Yield the files that a module may be: beside the importing one, or above it up to the repository's root."""
    path = module.replace(".", "/")
    for name in (f"{path}.py", f"{path}/__init__.py") if path else ("__init__.py",):
        if level:
            sources = [source.neighbour("../" * (level - 1) + name)]
        else:
            sources = [source.above(name), source.above(f"src/{name}")]
        yield from (source for source in sources if source is not None)
