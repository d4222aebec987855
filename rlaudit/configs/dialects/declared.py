"""Declared dialects among the others: recognised by their marks, read as their file says."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePath

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.front_ends import trees_of
from rlaudit.configs.dialects.rollout import configs_of
from rlaudit.configs.dialects.spec import head_of, programs_of, shipped, spec_at
from rlaudit.configs.dialects.tree import Tree
from rlaudit.configs.source import Source
from rlaudit.settings.rollout_config import RolloutConfig

# A user's own dialect is more specific than every one of this package.
_OWN = 30


@lru_cache(maxsize=1)
def declared() -> dict[str, Dialect]:
    """Return the dialects of this package by name. Only their first lines are read."""
    return {name: dialect_at(path) for name, path in shipped().items()}


def named_dialect(path: Path) -> Dialect:
    """Return the dialect of a user's own file. Raises UsageError if it is none, with the line and the key at fault."""
    from rlaudit.configs.dialects.schema import check

    head = head_of(path)
    check(path, has_hooks=False)
    specific = max(head.specific, _OWN)
    return replace(dialect_at(path), specific=specific)


def is_code_of_a_framework(path: str) -> bool:
    """Return whether a file is a Python file that a dialect names: what it does follows from a config, read or not."""
    return f"/{PurePath(path).as_posix()}".endswith(_files_of_code())


@lru_cache(maxsize=1)
def _files_of_code() -> tuple[str, ...]:
    specs = (spec_at(program) for path in shipped().values() for program in programs_of(path))
    return tuple({f"/{file}" for spec in specs for _, at in spec.places for file in at if file.endswith(".py")})


def dialect_at(path: Path) -> Dialect:
    """Return the dialect of a file, the rest of which is read when a config has its marks."""
    head = head_of(path)

    def marked(source: Source) -> Iterator[Path]:
        yield from (program for program in programs_of(path) if head_of(program).marks_it(source.text))

    def recognise(source: Source) -> bool:
        return any(_trees(source, program) for program in marked(source))

    def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
        configs: list[RolloutConfig] = []
        for program in marked(source):
            configs += configs_of(spec_at(program), _trees(source, program), source, vllm)
        if len(programs_of(path)) > 1:
            configs.sort(key=lambda config: config.place.start if config.place is not None else 0)
        return tuple(configs)

    return Dialect(path.stem, head.title, head.specific, recognise, read, head.about)


# Called when the file is recognised, and again under each version.
@lru_cache(maxsize=64)
def _trees(source: Source, path: Path) -> tuple[Tree, ...]:
    return tuple(trees_of(source, spec_at(path)))
