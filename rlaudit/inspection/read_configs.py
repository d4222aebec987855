"""From a file to the rollout configs in it: find the dialect, read once for each version, and pair the results."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.here_documents import in_here_documents
from rlaudit.configs.program import programs_beside
from rlaudit.configs.python_environment import unread_variables_at
from rlaudit.configs.server_and_trainer import asks_a_server, joined, waits_for_a_trainer
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_command import FurtherWords
from rlaudit.discover import discover
from rlaudit.settings.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.unknown import Unknown
from rlaudit.vllm.checkpoint import is_folder, may_read

# Words of which every file that sets up rollouts on vLLM has one (tests/inspection/test_unreadable_files.py).
_ROLLOUTS = re.compile("vllm|rollout|inference|update_(weights|named_param)|weight_update", re.IGNORECASE)
# In the first characters of a report of rlaudit, which names configs and is none.
_OUR_REPORT = '"schema": "rlaudit-report/'
_VARIABLE = re.compile(r"VLLM_[A-Z0-9_]+")


class Unreadable(ValueError):
    """The file is not what its name promises: broken YAML, TOML, shell or Python, or newer than this Python."""


@dataclass(frozen=True)
class Bug:
    """A reader or a rule that failed on a file."""

    path: str
    where: str
    error: Exception

    def __str__(self) -> str:
        trace = self.error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        line = f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})" if trace is not None else ""
        return f"{self.path}: {self.where} failed: {type(self.error).__name__}: {self.error}{line}; a bug in rlaudit"


@dataclass(frozen=True, eq=False)
class ConfigPair:
    """One rollout engine of a file, as each version gets it."""

    dialect: Dialect
    before: RolloutConfig
    after: RolloutConfig


@dataclass(frozen=True)
class FileConfigs:
    """All rollout engines of a file."""

    pairs: tuple[ConfigPair, ...] = ()
    # Sentences.
    not_seen: tuple[str, ...] = ()
    bugs: tuple[Bug, ...] = ()


@lru_cache(maxsize=4)
def known_dialects(files: tuple[Path, ...] = ()) -> Mapping[str, Dialect]:
    """Return every dialect by name. files: further dialects, which replace those of the same name."""
    from rlaudit.configs import readers
    from rlaudit.configs.dialects.declared import declared, named_dialect

    read_by_code = discover(readers, "DIALECT", Dialect)
    documentation = read_by_code.documentation
    documented = {name: replace(dialect, about=documentation(name)) for name, dialect in read_by_code.items()}
    further = {path.stem: named_dialect(path) for path in files}
    return dict(sorted({**documented, **declared(), **further}.items()))


def speaks_of_rollouts(text: str) -> bool:
    """Return whether a text has words of rollouts on vLLM."""
    return _ROLLOUTS.search(text) is not None


def parse(source: Source) -> None:
    """Parse the file in the syntax of its name. Raises Unreadable."""
    try:
        if source.suffix in {".yaml", ".yml", ".json"}:
            _ = source.yaml
        elif source.suffix == ".toml":
            _ = source.toml
    except (ValueError, RecursionError) as error:
        raise Unreadable(_at_line(error)) from None


def recognise(source: Source, dialects: Mapping[str, Dialect]) -> tuple[tuple[Dialect, ...], tuple[Bug, ...]]:
    """Return every dialect that the file could be written in, the most specific first."""
    if source.suffix == ".json" and "vllm" not in source.text.lower():
        # Every JSON that a dialect reads has the word. Parsing every lock file of a repository takes seconds.
        return (), ()
    if _OUR_REPORT in source.text[:100]:
        return (), ()
    parse(source)
    recognised: list[Dialect] = []
    bugs: list[Bug] = []
    for dialect in dialects.values():
        try:
            if dialect.recognise(source):
                recognised.append(dialect)
        except Exception as error:
            bugs.append(Bug(source.path, f"recognising {dialect.name}", error))
    if source.refusals and not recognised and speaks_of_rollouts(source.text):
        # A dialect passes over a part that it cannot read, since another dialect may read it. Here none does.
        raise Unreadable(_at_line(next(iter(source.refusals.values()))))
    best = max((dialect.specific for dialect in recognised), default=0)
    recognised = [dialect for dialect in recognised if dialect.specific >= 0 or best < 0]
    return tuple(sorted(recognised, key=lambda dialect: -dialect.specific)), tuple(bugs)


def sets_up_rollouts(source: Source, dialects: Mapping[str, Dialect]) -> bool:
    """Return whether a dialect reads a file."""
    if not speaks_of_rollouts(source.text):
        return False
    try:
        return bool(recognise(source, dialects)[0])
    except Unreadable:
        return False


def read_configs(source: Source, recognised: Sequence[Dialect], versions: tuple[Version, Version]) -> FileConfigs:
    """Return every rollout engine that the file sets up, by its most specific dialects. Raises Unreadable."""
    pairs: list[ConfigPair] = []
    not_seen: list[str] = []
    bugs: list[Bug] = []
    best = recognised[0].specific if recognised else 0
    plain = next((dialect for dialect in recognised if dialect.specific == 0 < best), None)
    for dialect in recognised:
        if dialect.specific < best:
            if _says_more(dialect, source, versions[1], pairs):
                not_seen.append(f"{source.path}: further settings that only {dialect.title} would use were not read")
            continue
        try:
            before = _read(source, dialect, plain, versions[0])
            after = before if versions[0] == versions[1] else _read(source, dialect, plain, versions[1])
        except (SyntaxError, RecursionError) as error:
            raise Unreadable(_at_line(error)) from None
        except Exception as error:
            if hasattr(error, "line") and isinstance(error, ValueError):
                raise Unreadable(_at_line(error)) from None
            bugs.append(Bug(source.path, f"reading it as {dialect.title}", error))
            continue
        matched, alone = _paired(dialect, before, after)
        pairs += matched
        not_seen += alone
    not_seen += dict.fromkeys(sentence for pair in pairs for sentence in _models_elsewhere(pair.after))
    not_seen += _decided_when_it_runs(source, [pair.after for pair in pairs])
    not_seen += in_here_documents(source)
    not_seen += unread_variables(source, [pair.after for pair in pairs])
    not_seen += [
        f"{source.path}: a part of this file was not read: {_at_line(error)}" for error in source.refusals.values()
    ]
    return FileConfigs(tuple(pairs), tuple(not_seen), tuple(bugs))


def _models_elsewhere(config: RolloutConfig) -> Iterator[str]:
    """Yield a sentence for each folder with the model's files that is outside of the work trees."""
    for setting in (config.model, config.engine.get("generation_config")):
        folder = setting.value if setting is not None else None
        if isinstance(folder, str) and is_folder(folder) and not may_read(config, Path(folder)):
            yield f"{folder}: the model's files were not read: they lie outside of the work tree. Name this folder, too"


def _decided_when_it_runs(source: Source, configs: Sequence[RolloutConfig]) -> Iterator[str]:
    """Yield a sentence for each file with the lines that only a run of a Python program decides."""
    settings = (setting for config in configs for part in (config.engine, config.sampling) for setting in part.values())
    decided = (setting.place for setting in settings if isinstance(setting.value, Unknown) and setting.value.by_run)
    places = {(place.path, place.line) for place in decided if place is not None}
    places |= {(source.path, line) for line in unread_variables_at(source)} if configs else set()
    for path in sorted({path for path, _ in places}):
        lines = [line for file, line in sorted(places) if file == path]
        listed = f"lines {', '.join(map(str, lines))}" if len(lines) > 1 else f"line {lines[0]}"
        yield f"{path}: only a run decides the values in {listed}; `rlaudit record` shows them"


def _read(source: Source, dialect: Dialect, plain: Dialect | None, vllm: Version) -> tuple[RolloutConfig, ...]:
    """Return the configs that a dialect reads, each trainer joined with the server that the file starts."""
    configs = dialect.read(source, vllm)
    if waits_for_a_trainer(configs):
        programs = [program for program in programs_beside(source) if dialect.recognise(program)]
        configs = joined([*configs, *(config for program in programs for config in dialect.read(program, vllm))])
        # A program that is not this server's trainer is a file of its own.
        return tuple(_with_handed(config, source) for config in configs if config.path == source.path)
    by_itself = plain is not None and any(map(asks_a_server, configs))
    configs = joined(configs, plain.read(source, vllm) if plain is not None and by_itself else ())
    return tuple(_with_handed(config, source) for config in configs)


def _with_handed(config: RolloutConfig, source: Source) -> RolloutConfig:
    """Return a config with open what a file which hands over to this one, or an array of its command, may set."""
    handed = {
        name: Setting(name, Unknown(f"{place} may set it"), None, Origin.FRAMEWORK, None, f"{place} may set it")
        for name, place in source.way.variables
    }
    arrays = (words for words in config.not_seen if isinstance(words, FurtherWords) and words.is_array)
    array, engine = next(arrays, None), config.engine
    if array is not None and not isinstance(engine, Elsewhere):
        engine = Elsewhere(array, engine)
    return replace(config, engine=engine, environment={**handed, **config.environment}, trees=source.trees)


def _says_more(dialect: Dialect, source: Source, vllm: Version, pairs: Sequence[ConfigPair]) -> bool:
    """Return whether a less specific dialect reads an engine that is not among the pairs."""
    places = {pair.after.place for pair in pairs}
    try:
        return any(config.place not in places for config in dialect.read(source, vllm))
    except Exception:  # What it fails on is not read either.
        return True


def _paired(
    dialect: Dialect, before: Sequence[RolloutConfig], after: Sequence[RolloutConfig]
) -> tuple[list[ConfigPair], list[str]]:
    if len(before) == len(after):
        return [ConfigPair(dialect, old, new) for old, new in zip(before, after, strict=True)], []
    by_place = {(config.path, config.place): config for config in before}
    pairs, alone = [], []
    for config in after:
        old = by_place.pop((config.path, config.place), None)
        if old is None:
            alone.append(
                f"{config.place or config.path}: this engine is set up under the newer vLLM only, so not compared"
            )
            old = config
        pairs.append(ConfigPair(dialect, old, config))
    alone += [f"{old.place or old.path}: this engine is set up under the older vLLM only" for old in by_place.values()]
    return pairs, alone


def _at_line(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    line = getattr(error, "line", None) or getattr(error, "lineno", None)
    problem = getattr(error, "msg", None) or str(error) or type(error).__name__
    return f"{problem} in line {line}" if line else str(problem)


def unread_variables(source: Source, configs: Sequence[RolloutConfig]) -> tuple[str, ...]:
    """Return a sentence for each mapping of a YAML or TOML file with variables that no config of the file has.

    They are not the engine's for certain: the program decides for which process such a section is.
    """
    if not configs or "VLLM_" not in source.text or source.suffix not in {".yaml", ".yml", ".toml"}:
        return ()
    roots = source.plain_yaml if source.suffix != ".toml" else (source.toml,)
    taken = {name for config in configs for name in config.environment}
    variables = (
        {name: node for name, node in mapping.items() if _VARIABLE.fullmatch(name) and name not in taken}
        for root in roots if root is not None for mapping in _mappings(root)
    )  # fmt: skip
    return tuple(_unread(source, variables) for variables in variables if variables)


def _mappings(root: Node) -> Iterator[Node]:
    """Yield every mapping of a document, without recursion: a document may be nested deeply."""
    todo = [root]
    while todo:
        node = todo.pop()
        if isinstance(node.value, dict):
            yield node
        todo += [child for _, child in node.items()]
        todo += node.elements()


def _unread(source: Source, variables: Mapping[str, Node]) -> str:
    line = min(node.place.line for node in variables.values())
    return (
        f"{source.path}:{line}: {', '.join(variables)}: this section was not read, and the engine may get its variables"
    )
