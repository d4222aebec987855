"""Fields of a release's classes as rows of the catalogue: default, kind, line, and the words that are accepted."""

import ast
from typing import Any

from extract_catalogue.modules import Definition, FieldNode, Module, Tree
from extract_catalogue.reduce import Instance, as_json, default_of, reduced

Row = list[Any]
_FREE_TEXT = {"str", "Any"}


def row(tree: Tree, field: FieldNode) -> Row:
    """A field as [default, kind, line, *choices]."""
    kind = " ".join(ast.unparse(field.annotation).split())
    return [as_json(default_of(tree, field)), kind, origin(tree, field), *choices(tree, field)]


def rows(tree: Tree, module: Module, cls: ast.ClassDef) -> dict[str, Row]:
    """Every field of a class."""
    return {name: row(tree, field) for name, field in tree.fields(module, cls).items()}


def origin(tree: Tree, field: FieldNode) -> str:
    """The line that really holds the default: `seed: int = ModelConfig.seed` is decided in ModelConfig."""
    node = field.default
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "get_field" and isinstance(node.args[1], ast.Constant):
        node = ast.Attribute(node.args[0], str(node.args[1].value))
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        found = tree.find_class(node.value.id, field.module)
        bound = tree.class_value(node.attr, *found) if found is not None else None
        if bound is not None:
            return f"{bound[0].path}:{bound[2]}"
    return field.at


def choices(tree: Tree, field: FieldNode) -> list[str]:
    """The words of a Literal or an enumeration, without None; empty where any text is accepted."""
    words: list[str] = []
    if not _words(tree, field.annotation, field.module, words):
        return []
    return list(dict.fromkeys(words))


def is_boolean(tree: Tree, field: FieldNode) -> bool:
    """Whether vLLM makes a `--x` / `--no-x` pair of a field: `bool`, also optional, but not `bool | str | None`."""
    names = {node.id for node in ast.walk(field.annotation) if isinstance(node, ast.Name)}
    return "bool" in names and "str" not in names


def nested(tree: Tree, module: Module, cls: ast.ClassDef) -> dict[str, Row]:
    """Fields of the config objects among a class's fields, as `compilation_config.pass_config.enable_sp`.

    Objects inside them count where they are there by default.
    """
    found: dict[str, Row] = {}
    for name, field in tree.fields(module, cls).items():
        _nest(tree, name, field, found, deep=True)
    return found


def _nest(tree: Tree, path: str, field: FieldNode, found: dict[str, Row], deep: bool) -> None:
    config = _config_class(tree, path.rpartition(".")[2], field)
    if config is None:
        return
    for name, inner in tree.fields(*config).items():
        found[f"{path}.{name}"] = row(tree, inner)
        if deep and isinstance(default_of(tree, inner), Instance):
            _nest(tree, f"{path}.{name}", inner, found, deep=False)


def _config_class(tree: Tree, name: str, field: FieldNode) -> tuple[Module, ast.ClassDef] | None:
    """The class of a config field. Some are annotated as a plain dict and named after their class."""
    names = [node.id for node in ast.walk(field.annotation) if isinstance(node, ast.Name)]
    if name.endswith("_config"):
        names.append("".join(word.capitalize() for word in name.split("_")))
        default = default_of(tree, field)
        names += [default.cls] if isinstance(default, Instance) else []
    for candidate in names:
        if candidate.endswith("Config"):
            found = tree.find_class(candidate, field.module)
            if found is not None and found[0].path.startswith("vllm/config"):
                return found
    return None


def _words(tree: Tree, node: ast.expr, module: Module, words: list[str]) -> bool:  # noqa: PLR0911 - a line a kind
    """Collect accepted words; False when the annotation also accepts free text or something else than words."""
    match node:
        case ast.Constant(value=None):
            return True
        case ast.Constant(value=str(text)):  # an annotation in quotes
            return _words(tree, ast.parse(text, mode="eval").body, module, words)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _words(tree, left, module, words) & _words(tree, right, module, words)
        case ast.Subscript(value=ast.Name(id="Optional" | "Union"), slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return all(_words(tree, part, module, words) for part in parts)
        case ast.Subscript(value=ast.Name(id="Literal"), slice=inner):
            return _literal(tree, inner, module, words)
        case ast.Name(id=name) if name not in _FREE_TEXT:
            found = tree.find(name, module)
            return found is not None and _named(tree, found[0], found[1], words)
    return False


def _literal(tree: Tree, inner: ast.expr, module: Module, words: list[str]) -> bool:
    for element in inner.elts if isinstance(inner, ast.Tuple) else [inner]:
        if isinstance(element, ast.Constant):
            words.append(str(element.value))
        elif not _words(tree, element, module, words):
            return False
    return True


def _named(tree: Tree, module: Module, definition: Definition, words: list[str]) -> bool:
    if isinstance(definition, ast.expr):
        return _words(tree, definition, module, words)
    if isinstance(definition, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in definition.bases):
        values = [reduced(tree, node.value, module) for node in definition.body if isinstance(node, ast.Assign)]
        words += [value for value in values if isinstance(value, str)]
        return bool(words)
    return False
