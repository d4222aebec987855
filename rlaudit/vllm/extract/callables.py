"""How a release's functions and classes are called: of the modules that programs around vLLM use."""

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.version import Version

from rlaudit.vllm.callables import ANY_NAME, BY_NAME, DEFAULT, FILE
from rlaudit.vllm.extract.modules import Module, Tree
from rlaudit.vllm.importable import Index, spans

# Layers, kernels and models are no business of the programs that an audit reads.
_USED = ("entrypoints", "engine", "executor", "worker", "lora", "distributed", "utils", "v1", "config", "outputs",
         "sampling_params", "inputs", "sequence", "transformers_utils", "model_executor/model_loader", "tokenizers",
         "device_allocator", "tool_parsers")  # fmt: skip
_MADE_BY_FIELDS = ("dataclass", "config")


def record_callables(version: Version, tree: Tree, folder: Path) -> None:
    """Put a release into the one file of all of them, which keeps what differs between releases."""
    path = folder / FILE
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"releases": [], "callables": {}}
    known = tuple(map(Version, stored["releases"]))
    index = Index(known, stored["callables"])
    by_release: dict[Version, Mapping[str, tuple[str, ...]]] = {
        one: {name: tuple(index.names(name, one)) for name in index.spans} for one in known
    }
    by_release[version] = {name: (text,) for name, text in callables(tree).items()}
    write_callables(by_release, path)


def write_callables(by_release: Mapping[Version, Mapping[str, tuple[str, ...]]], path: Path) -> None:
    """One line for each callable, so that two states of the file can be compared with any diff."""
    lines = (f"{json.dumps(name)}:{json.dumps(lists)}" for name, lists in spans(by_release).items())
    releases = json.dumps([str(version) for version in sorted(by_release)])
    path.write_text(f'{{\n"releases":{releases},\n"callables":{{\n' + ",\n".join(lines) + "\n}\n}\n", encoding="utf-8")


def callables(tree: Tree) -> dict[str, str]:
    """Parameters by dotted path; private names are left out."""
    found: dict[str, str] = {}
    for path in sorted(tree.paths):
        if not path.removeprefix("vllm/").startswith(_USED):
            continue
        module = tree.module(path)
        assert module is not None
        dotted = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name, definition in module.bound.items():
            if not name.startswith("_"):
                found |= {f"{dotted}.{called}": text for called, text in _of(tree, module, name, definition)}
    return found


def _of(tree: Tree, module: Module, name: str, definition: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        if not definition.decorator_list:
            yield name, parameters_text(definition.args, 0)
    elif isinstance(definition, ast.ClassDef):
        by_fields = any(mark in ast.unparse(one) for one in definition.decorator_list for mark in _MADE_BY_FIELDS)
        made = None if by_fields else tree.method("__init__", module, definition)
        if made is not None:
            yield name, parameters_text(made[1].args, 1)
        for node in definition.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
                kinds = {getattr(one, "id", "") for one in node.decorator_list}
                if kinds in ({"classmethod"}, {"staticmethod"}):
                    yield f"{name}.{node.name}", parameters_text(node.args, 1 if kinds == {"classmethod"} else 0)


def parameters_text(arguments: ast.arguments, skipped: int) -> str:
    """Return parameters as rlaudit/vllm/callables.py reads them. skipped: how many of the first are left out."""
    ordered = [*arguments.posonlyargs, *arguments.args]
    plain = len(ordered) - len(arguments.defaults)
    words = [one.arg + (DEFAULT if at >= plain else "") for at, one in enumerate(ordered)][skipped:]
    if arguments.vararg is not None:
        words.append(f"{BY_NAME}{arguments.vararg.arg}")
    elif arguments.kwonlyargs:
        words.append(BY_NAME)
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    words += [one.arg + (DEFAULT if value is not None else "") for one, value in pairs]
    if arguments.kwarg is not None:
        words.append(ANY_NAME)
    return ",".join(words) or ","
