"""What a table says of a framework, held against a copy of its code that lies around the config.

The code is not interpreted. An argument that the call, dictionary or class of the engine's file gives as a literal has
that value, one that the file does not name is left to vLLM, and one that it gives as several literals, or in an
unreleased copy as anything else, is open: `rlaudit record` writes down what runs. Of the trainer, words are looked up.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from packaging.version import Version

from rlaudit.configs.draft import Draft, Settings
from rlaudit.configs.framework_source.checkout import Checkout, checkout_of, shown
from rlaudit.configs.framework_source.own_files import take_own_files
from rlaudit.configs.python_environment import python_environment
from rlaudit.configs.rollout_config import Origin, Setting
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.python_text import parse
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.configs.usage_context import makes_bare_engine

# A call, a dictionary or a class with as many arguments of vLLM builds an engine, or the one class that counts.
FEWEST_OF_AN_ENGINE = 4
# Arguments for which every dialect has a key of another name, and addresses of ranks, which move no logprob.
_NOT_LOOKED_UP = {
    "model", "tokenizer", "served_model_name", "reasoning_parser", "data_parallel_address", "data_parallel_rpc_port",
    "data_parallel_size_local", "data_parallel_start_rank", "master_addr", "master_port", "nnodes", "node_rank",
}  # fmt: skip
_NOT_ALONE = r"(?![\w.\[(])(?!\s+(?:if|or|and)\b)"
_LITERAL = rf"""(True|False|None|-?\d[\d_]*(?:\.\d+)?(?:[eE]-?\d+)?|"[^"\n]*"|'[^'\n]*'){_NOT_ALONE}"""
_FIELD = r"(?:[fF]ield\(\s*(?:default\s*=\s*)?)?"
# Fact of the trainer -> what the code of a framework for which it is true has somewhere.
_WORDS: Mapping[str, str] = {
    "divides_by_temperature": r"/=?\s*\(?[\w.]*temperature|div_?\([^)]*temperature",
    "replays_filters": r"TopPLogitsWarper|TopKLogitsWarper|top_[pk]_(?:filter|logits)",
    "resets_prefix_cache": r"\breset_prefix_cache\b|\bclear_cache\b|(?:engine|llm|server|rollout)\w*\.sleep\b",
    "salts_prefix_cache": r"\bcache_salt\b",
    "reads_prompt_logprobs": r"\bprompt_logprobs\b",
    "pause_mode": r"\bpause_generation\b|/pause\b",
    "pause_clears_cache": r"\bpause_generation\b|/pause\b",
    "pause_arguments": r"\bpause_generation\b",
    "importance_sampling_correction": r"importance_sampling|correction|rollout_is|use_rho",
    "recomputes_old_logprobs": r"old_\w*log_?p",
}
_CORRECTION = "importance_sampling_correction"
_OF_THE_CORRECTION = ("importance_sampling_mode", "uses_rollout_logprobs", "logs_mismatch", "recomputes_old_logprobs")
_CHOICE = "VLLM_USE_V1"
_PAUSE = re.compile(r"\.pause_generation\(([^()]*)\)")
_PAUSED = {"pause_mode": "mode", "pause_clears_cache": "clear_cache"}
# What a framework does only by a name of vLLM's: without the word it does not.
_BY_ITS_NAME = {"resets_prefix_cache", "salts_prefix_cache"}
# What a word anywhere makes doubtful.
_DOUBTFUL = {"salts_prefix_cache", "reads_prompt_logprobs"}


@dataclass(frozen=True)
class FrameworkFiles:
    """The files of a framework that decide, relative to the folder that holds its package."""

    package: str
    # Those that may build the engine, the newest layout first; `file#Class` if one class in it counts.
    engine: tuple[str, ...] = ()
    # Those with the defaults of the framework's own options.
    options: tuple[str, ...] = ()
    # What names of options begin with.
    prefix: str = ""
    # Whether its class gives no flag for a false value.
    omits_false: bool = False
    # Further files by which the package is known.
    marks: tuple[str, ...] = ()
    # Arguments of which the tables know the releases that leave them out.
    leaves_out: tuple[str, ...] = ()

    def checkout(self, source: Source) -> Checkout | None:
        """Return the framework's package for a config, None if it is not there."""
        files = (name.partition("#")[0] for name in (*self.marks, *self.engine, *self.options))
        return checkout_of(source, self.package, *files)


def hold_against(draft: Draft, files: FrameworkFiles, checkout: Checkout | None, vllm: Version) -> None:
    """Correct, or leave open, what the tables of a dialect say and the copy does not. What the file writes stays."""
    if checkout is None:
        return
    version = checkout.version
    is_released = version is not None and not version.is_prerelease
    which = f"{files.package} {version}" if version is not None else f"a {files.package} that names no release"
    draft.not_seen.append(
        f"the code in {shown(f'{checkout.root}/{checkout.folder}')}, {which}: read are literals of its engine and "
        "words of its trainer; `rlaudit record` writes down what it makes of this config"
    )
    take_own_files(draft, checkout)
    options = tuple(one for name in files.options if (one := part_of(checkout, name)) is not None)
    if files.engine:
        _engine(draft, files, checkout, vllm, options, is_released)
    _variables(draft, files, checkout)
    _pauses(draft, checkout)
    _facts(draft, checkout, options)
    # A name as common as temperature tells something in a class that is known alone.
    classes = tuple(one for one in options if one.text.lstrip().startswith("class "))
    requests = tuple(one for one in options if not is_released and _makes_requests(one))
    for name, setting in list(draft.sampling.items()):
        if setting.origin is not Origin.FRAMEWORK or name in draft.decided:
            continue
        literals, where = _literals((name,), classes)
        if requests and not any(name in words_of(one) for one in options):
            _leave_open(draft, draft.sampling, name, shown(checkout.root))
        elif literals == [None]:
            draft.sampling.by_code(name, None, where)
        else:
            _by_literals(draft, draft.sampling, name, literals, where)


def _makes_requests(source: Source) -> bool:
    return not {"RequestConfig", "SamplingParams"}.isdisjoint(words_of(source))


def engine_file(checkout: Checkout, names: Iterable[str], vllm: Version) -> Source | None:
    """Return the first of some files of a copy that builds an engine, or its class that counts."""
    parts = (part_of(checkout, name) for name in names)
    return next((one for one in parts if one is not None and given_in(one, engine_names(vllm))), None)


@lru_cache(maxsize=64)
def given_in(
    source: Source, names: frozenset[str], fewest: int = FEWEST_OF_AN_ENGINE
) -> Mapping[str, tuple[ast.expr, ...]]:
    """Return the engine arguments that calls, dictionaries and classes of a file give, with every value of each."""
    try:
        tree = parse(source.text)
    except UnreadableText:
        return {}
    found: dict[str, tuple[ast.expr, ...]] = {}
    for node in ast.walk(tree):
        pairs = [(name, value) for name, value in _pairs(node) if name in names]
        if len(pairs) >= fewest or (pairs and tree.body == [node]):
            for name, value in pairs:
                found[name] = (*found.get(name, ()), value)
    return found


def _pairs(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Call):
        yield from ((keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg is not None)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value
    elif isinstance(node, ast.ClassDef):
        for line in node.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
                yield line.target.id, _default(line.value)


def _default(value: ast.expr) -> ast.expr:
    """The default of a field of a dataclass or of pydantic."""
    if not isinstance(value, ast.Call):
        return value
    named = [keyword.value for keyword in value.keywords if keyword.arg == "default"]
    return (*named, *value.args, value)[0]


@lru_cache(maxsize=64)
def words_of(source: Source) -> frozenset[str]:
    """Return every name in a file, those of flags with underscores."""
    words = re.findall(r"[A-Za-z]\w*", re.sub(r"(?<=\w)-(?=\w)", "_", source.text))
    return frozenset((*words, *(word.removeprefix("no_") for word in words)))


def engine_names(vllm: Version) -> frozenset[str]:
    """Return the engine arguments of a release that are looked up in a framework's code."""
    from rlaudit.vllm.catalogue import Catalogue

    return frozenset(Catalogue.at(vllm).engine) - _NOT_LOOKED_UP


@lru_cache(maxsize=64)
def part_of(checkout: Checkout, name: str) -> Source | None:
    """Return a file, or the text of one class in it."""
    path, _, owner = name.partition("#")
    source = checkout.file(path)
    if source is None or not owner:
        return source
    before, found, rest = source.text.partition(f"class {owner}")
    rest = re.split(r"\n(?=[@\w])", rest, maxsplit=1)[0]
    # Blank lines keep the numbers of the others.
    return Source(source.path, "\n" * before.count("\n") + found + rest) if found else None


def _engine(
    draft: Draft, files: FrameworkFiles, checkout: Checkout, vllm: Version, options: tuple[Source, ...],
    is_released: bool,
) -> None:  # fmt: skip
    built = engine_file(checkout, files.engine, vllm)
    if built is None:
        for name, one in draft.engine.items():
            if _by_a_table(one) and name not in draft.decided:
                _leave_open(draft, draft.engine, name, shown(f"{checkout.root}/{checkout.folder}"))
        return
    path, given = shown(built.path), given_in(built, engine_names(vllm))
    # What the fields of one class leave out, the rest of its file may store.
    words = words_of(checkout.file(built.path.removeprefix(f"{checkout.root}/")) or built)
    draft.bare = makes_bare_engine(built.text)
    draft.parts = tuple(dict.fromkeys((*draft.parts, path)))
    for name in sorted(engine_names(vllm)):
        setting = draft.engine.get(name)
        if setting is not None and not _by_a_table(setting):
            continue
        if name not in words:
            draft.decided[name] = f"{path}, which does not name it"
            draft.engine.pop(name, None)
        elif name in draft.decided:
            continue
        elif name in given:
            names = (f"{files.prefix}{name}", name)
            literals, where = _given_literals(given[name], path, names, options)
            if files.omits_false and literals in ([False], [""]):
                literals = [None]
            handed_on = any(_is_option(one, names) for value in given[name] for one in ast.walk(value))
            assembled = name in files.leaves_out if setting is None else _is_assembled(setting.value, words)
            if not literals and not is_released and not (assembled or (handed_on and setting is not None)):
                literals = [Unknown("")]
            _by_literals(draft, draft.engine, name, literals, where)
            draft.decided.setdefault(name, where)
        elif setting is not None and not is_released and not checkout.says(rf"\b{re.escape(str(setting.value))}\b"):
            # A store, or a key of a dictionary of its own.
            _leave_open(draft, draft.engine, name, path)


def _given_literals(
    values: tuple[ast.expr, ...], path: str, names: tuple[str, str], options: tuple[Source, ...]
) -> tuple[list[Any], str]:
    """The literals that an argument is given as, or that the option has for which it is handed on; and their place."""
    where = f"{path}:{values[0].lineno}"
    if all(_is_option(value, names) for value in values):
        literals, at = _literals(names[:1], options)
        return literals, at or where
    literals = [_evaluated(value) for value in values]
    return ([] if all(isinstance(one, Unknown) for one in literals) else literals), where


def _by_a_table(setting: Setting) -> bool:
    return setting.origin is Origin.FRAMEWORK and setting.place is None


def _by_literals(draft: Draft, settings: Settings, name: str, literals: list[Any], where: str) -> None:
    """Take the literal that a name is given for its value; several leave it open."""
    if any(isinstance(one, Unknown) or one != literals[0] for one in literals):
        _leave_open(draft, settings, name, where)
    elif literals:
        settings.pop(name, None)
        if literals[0] is not None:
            settings.by_code(name, literals[0], where)
        draft.decided[name] = where


def _is_option(value: ast.AST, names: tuple[str, ...]) -> bool:
    """Whether an expression is an attribute or a key of one of the names."""
    if isinstance(value, ast.Subscript):
        return getattr(value.slice, "value", None) in names
    return isinstance(value, ast.Attribute) and value.attr in names


def _is_assembled(value: Any, words: frozenset[str]) -> bool:
    """Whether a file has every word of a mapping, which it puts together from its parts."""
    said = [*value, *(one for one in value.values() if isinstance(one, str))] if isinstance(value, Mapping) else []
    return bool(said) and words.issuperset(said)


def _evaluated(literal: ast.expr | str) -> Any:
    try:
        return ast.literal_eval(literal)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return Unknown("")


def _leave_open(draft: Draft, settings: Settings, name: str, where: str) -> None:
    reason = f"{where} decides it, and the code there is not followed"
    settings.by_code(name, Unknown(reason), reason)
    draft.decided[name] = where


def _variables(draft: Draft, files: FrameworkFiles, checkout: Checkout) -> None:
    """Drop the variables that the copy does not name, and take those that the files of its engine set."""
    for name, setting in list(draft.environment.items()):
        if setting.origin is Origin.FRAMEWORK and not checkout.says(rf"\b{name}\b"):
            del draft.environment[name]
            draft.decided[name] = f"{shown(f'{checkout.root}/{checkout.folder}')}, which does not name it"
    for name, node in _set_by_the_engine(files, checkout).items():
        given, where = draft.environment.get(name), f"{shown(node.place.path)}:{node.place.line}"
        if given is not None and not _by_a_table(given):
            continue
        if not isinstance(node.value, Unknown):
            draft.environment.by_code(name, node.value, where)
            draft.decided[name] = where
        elif name == _CHOICE:
            _leave_open(draft, draft.environment, name, where)


def _set_by_the_engine(files: FrameworkFiles, checkout: Checkout) -> dict[str, Node]:
    """Return the variables that the engine's files set, for certain or as a default; where they differ it is open."""
    found: dict[str, Node] = {}
    for source in (checkout.file(name.partition("#")[0]) for name in files.engine):
        for name, node in python_environment(source, ("VLLM_",)).items() if source is not None else ():
            differs = name in found and found[name].value != node.value
            several = Unknown(f"files of the engine set {name} in several ways")
            found[name] = replace(node, value=several) if differs else node
    return found


def _facts(draft: Draft, checkout: Checkout, options: tuple[Source, ...]) -> None:
    """Take back the facts of a trainer that the words of its code contradict."""
    root = shown(f"{checkout.root}/{checkout.folder}")
    for name, fact in list(draft.trainer.items()):
        if fact.origin is not Origin.FRAMEWORK or name in draft.decided:
            continue
        there = checkout.says(_WORDS[name]) if name in _WORDS else None
        defaults, where = _literals((rf"\w*{name}",), options)
        if there is False and name in _BY_ITS_NAME:
            draft.trains(name, False, f"no file of {root} has the word")
            draft.decided[name] = root
        elif fact.known and (
            defaults not in ([], [fact.value])
            or (there is False and (fact.value or name == _CORRECTION))
            or (there and not fact.value and name in _DOUBTFUL)
        ):
            for follows in (name, *(_OF_THE_CORRECTION if name == _CORRECTION else ())):
                if follows in draft.trainer and draft.trainer[follows].origin is Origin.FRAMEWORK:
                    _leave_open(draft, draft.trainer, follows, where or root)


def _pauses(draft: Draft, checkout: Checkout) -> None:
    """Leave open what a table says of pause_generation and the keywords of the copy's calls do not."""
    calls = [dict(re.findall(r"(\w+)\s*=\s*([^,]+)", given)) for given in _PAUSE.findall(checkout.text)]
    where = shown(f"{checkout.root}/{checkout.folder}")
    for name, fact in list(draft.trainer.items()) if calls else ():
        if fact.origin is not Origin.FRAMEWORK or name in draft.decided or not fact.known:
            continue
        given = [_evaluated(call[_PAUSED[name]].strip()) for call in calls if _PAUSED.get(name) in call]
        known = name == "pause_arguments" and any(set(call) == set(fact.value) for call in calls)
        if any(one != fact.value for one in given) or (name == "pause_arguments" and not known):
            _leave_open(draft, draft.trainer, name, where)


def _literals(names: tuple[str, ...], sources: Iterable[Source]) -> tuple[list[Any], str]:
    """Return every literal to which some files bind a name, and the place of the last. names: patterns."""
    found, where = list[Any](), ""
    spelt = "|".join(dict.fromkeys(names))
    key, field = rf"[\"'](?:{spelt})[\"'][ ]*[:,]", rf"\b(?:{spelt})[ ]*(?::[^=\n,]{{0,60}})?="
    binding = re.compile(rf"(?:{key}|{field})[ ]*{_FIELD}{_LITERAL}")
    for source in sources:
        for match in binding.finditer(source.text):
            value = _evaluated(match[1])
            found += [] if value in found else [value]
            where = f"{shown(source.path)}:{source.text.count(chr(10), 0, match.start()) + 1}"
    return found, where
