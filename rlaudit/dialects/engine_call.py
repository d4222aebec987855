"""What a copy of the framework's code gives to vLLM's engine and the dialect does not list: no argument passes unseen.

    engine call: {files: [trl/generation/vllm_generation.py, trl/trainer/grpo_trainer.py], if: colocated}

The first of these files that is in the copy and calls a class or a function with four arguments of vLLM's is read. An
argument that it gives as a literal has that value. Any other one is open, unless the dialect sets it, or it is the
option that the dialect names. One that the dialect sets and the file does not name is left to vLLM.
"""

import ast
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rlaudit.configs.draft import by_code
from rlaudit.configs.framework_source.checkout import shown
from rlaudit.configs.rollout_config import Origin, Setting
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Unknown
from rlaudit.configs.syntax.python_text import parse
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.configs.usage_context import makes_bare_engine
from rlaudit.dialects.framework_code import filled
from rlaudit.vllm.catalogue import Catalogue

if TYPE_CHECKING:
    from rlaudit.dialects.reading import Reading

FEWEST_OF_AN_ENGINE = 4
# Arguments that the dialects know by keys of other names.
_NOT_LOOKED_UP = {"model", "tokenizer", "served_model_name"}


def take_engine_call(reading: "Reading") -> None:
    """Settle what the copy around a config gives to the engine and the dialect does not know."""
    said, checkout, draft = reading.spec.said.get("engine call"), reading.code.checkout, reading.draft
    if said is None or checkout is None or reading.holds(said.get("if")) is not True:
        return
    names = _names(reading.vllm)
    files = (file.replace("{call}", reading.tree.call) for file in said["files"])
    found = ((source, given) for file in files
             if (source := checkout.file(file)) is not None and (given := given_in(source, names)))  # fmt: skip
    source, given = next(found, (None, {}))
    if source is None:
        return
    path = shown(source.path)
    draft.bare = makes_bare_engine(source.text)
    draft.parts = tuple(dict.fromkeys((*draft.parts, path)))
    for name, value in given.items():
        one, where = draft.engine.get(name), f"{path}:{value.lineno}"
        arrives = _literal(value, where)
        is_settled = one is not None and (one.place is not None or (one.known and isinstance(arrives, Unknown)))
        entry = reading.spec.said["engine"].get(name, ())
        clauses = entry if isinstance(entry, list | tuple) else (entry,)
        if not is_settled and not any(_hands_on(value, said) or _is_here(said, reading) for said in clauses):
            draft.engine.by_code(name, arrives, where)
            draft.decided[name] = where
    for name, one in list(draft.engine.items()):
        if one.origin is Origin.FRAMEWORK and one.place is None and not re.search(rf"\b{name}\b", source.text):
            del draft.engine[name]
            draft.decided[name] = f"{path}, which does not name it"


def _is_here(said: Mapping[str, Any], reading: "Reading") -> bool:
    """Return whether a clause that leaves an argument to vLLM names what this copy has."""
    at = filled(said.get("at", {}), None, reading.tree.call) if said.get("nothing") else {}
    return bool(at) and reading.code.line_of(at) is not None


def _hands_on(value: ast.expr, said: Mapping[str, Any]) -> bool:
    """Return whether an expression is the option from which the dialect takes an argument, under its name or without
    what its names begin with.
    """
    keys = {key.strip().lstrip("@") for key in said.get("key", "").split("|")}
    names = {getattr(node, "attr", None) for node in ast.walk(value)}
    return any(key and (key in names or key.partition("_")[2] in names) for key in keys)


def given_by(source: Source, vllm: Version) -> dict[str, Setting]:
    """Return the arguments that a file gives to an engine which it builds."""
    path, given = shown(source.path), given_in(source, _names(vllm))
    where = {name: f"{path}:{value.lineno}" for name, value in given.items()}
    return {name: by_code(name, _literal(value, where[name]), where[name]) for name, value in given.items()}


def _names(vllm: Version) -> frozenset[str]:
    return frozenset(Catalogue.at(vllm).engine) - _NOT_LOOKED_UP


@lru_cache(maxsize=64)
def given_in(source: Source, names: frozenset[str]) -> Mapping[str, ast.expr]:
    """Return the arguments of vLLM's that a file gives in the calls that build an engine."""
    try:
        tree = parse(source.text)
    except UnreadableText:
        return {}
    found: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        given = {one.arg: one.value for one in node.keywords if one.arg in names} if isinstance(node, ast.Call) else {}
        if len(given) >= FEWEST_OF_AN_ENGINE:
            found |= {name: value for name, value in given.items() if name is not None}
    return found


def _literal(value: ast.expr, where: str) -> Any:
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return Unknown(f"{where} decides it, and the code there is not followed")
