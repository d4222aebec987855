"""Puts the facts of one release together, as they are written into the table."""

import ast
from collections.abc import Iterator
from typing import Any

from extract_catalogue.fields import nested, row, rows
from extract_catalogue.fingerprint import fingerprint
from extract_catalogue.flags import Flag, flags, flags_of_fields
from extract_catalogue.modules import Module, Tree
from extract_catalogue.routes import routes
from extract_catalogue.signatures import signatures
from extract_catalogue.variables import variables
from rlaudit.errors import NotFinished
from rlaudit.vllm.resolve import resolution_rules

_ARGUMENTS = "vllm/engine/arg_utils.py"
_SERVE = "vllm/entrypoints/cli/serve.py"


def release(tree: Tree, source: str) -> dict[str, Any]:
    """The facts of a source tree, by kind and name. Raises NotFinished when it does not hold a vLLM as known."""
    module = tree.module(_ARGUMENTS)
    cls = module.bound.get("AsyncEngineArgs") if module is not None else None
    if module is None or not isinstance(cls, ast.ClassDef):
        raise NotFinished(f"{source} holds no vLLM: {_ARGUMENTS} with AsyncEngineArgs is not there")
    engine = {name: field for name, field in tree.fields(module, cls).items() if not name.startswith("_")}
    front = dict(_frontend_classes(tree))
    front_fields = {name: field for home, owner in front.items() for name, field in tree.fields(*owner).items()}
    engine_flags = list(_engine_flags(tree, module))
    front_flags = [*flags_of_fields(tree, front_fields), *_frontend_flags(tree)]
    return {
        "engine": _with_choices({name: row(tree, field) for name, field in engine.items()}, engine_flags),
        "frontend": {name: row(tree, field) for name, field in front_fields.items()},
        "cli": _spellings(tree, [*front_flags, *engine_flags]),
        "sampling": _sampling(tree),
        "variables": variables(tree),
        "nested": nested(tree, module, cls),
        "signatures": signatures(tree),
        "routes": routes(tree),
        "resolvers": resolvers(tree),
    }


def resolvers(tree: Tree) -> dict[str, list[str]]:
    """Where a release decides its values: for each rule the code's fingerprint, then its lines."""
    found = {}
    for name, rule in resolution_rules().items():
        short, lines = fingerprint(tree, rule.functions)
        if short:
            found[name] = [short, *lines]
    return found


def _engine_flags(tree: Tree, module: Module) -> Iterator[Flag]:
    for name in ("EngineArgs", "AsyncEngineArgs"):
        cls = module.bound.get(name)
        if isinstance(cls, ast.ClassDef):
            own = [node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == "add_cli_args"]
            for function in own:
                yield from flags(tree, module, function)


def _spellings(tree: Tree, found: list[Flag]) -> dict[str, str]:
    spellings = {spelling: flag.sets for flag in found for spelling in flag.names()}
    if "optimization-level" in spellings:  # the parser itself turns -O3 into it, argparse never sees the short form
        spellings["O"] = "optimization_level"
    return dict(sorted(spellings.items()))


def _with_choices(engine: dict[str, list[Any]], found: list[Flag]) -> dict[str, list[Any]]:
    """Old releases list the accepted words at the flag and not in the type."""
    for flag in found:
        if flag.choices and flag.sets in engine and len(engine[flag.sets]) == len(("default", "kind", "line")):
            engine[flag.sets] += flag.choices
    return engine


def _frontend_modules(tree: Tree) -> Iterator[Module]:
    for path in sorted(tree.paths):
        if path.startswith("vllm/entrypoints/") and path.endswith("/cli_args.py"):
            module = tree.module(path)
            if module is not None and "make_arg_parser" in module.bound:
                yield module


def _frontend_classes(tree: Tree) -> Iterator[tuple[str, tuple[Module, ast.ClassDef]]]:
    for module in _frontend_modules(tree):
        cls = module.bound.get("FrontendArgs")
        if isinstance(cls, ast.ClassDef):
            yield module.path, (module, cls)


def _frontend_flags(tree: Tree) -> Iterator[Flag]:
    for module in _frontend_modules(tree):
        function = module.bound["make_arg_parser"]
        if isinstance(function, ast.FunctionDef):
            yield from flags(tree, module, function)
    serve = tree.module(_SERVE)
    for node in ast.walk(serve.tree) if serve is not None else ():
        if isinstance(node, ast.FunctionDef) and serve is not None and node.name == "subparser_init":
            yield from flags(tree, serve, node)


def _sampling(tree: Tree) -> dict[str, list[Any]]:
    module = tree.module("vllm/sampling_params.py")
    cls = module.bound.get("SamplingParams") if module is not None else None
    return (
        {name: entry for name, entry in rows(tree, module, cls).items() if not name.startswith("_")}
        if module is not None and isinstance(cls, ast.ClassDef)
        else {}
    )
