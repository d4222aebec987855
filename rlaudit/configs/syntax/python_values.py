"""What expressions of Python source evaluate to: literals, module constants, literal dictionaries.

A name counts as known where it is assigned exactly once in its scope, to something that is known; what a loop, a
condition or another module decides is Unknown with the reason. An option of the program's own command line is taken at
its default. An argument of a function is what the calls of the function in this file pass, where they agree; what a
function returns is followed where it has one `return`.
"""

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rlaudit.configs.syntax.node import REST, Node, Unknown
from rlaudit.configs.syntax.place import Place
from rlaudit.configs.syntax.python_literals import LONGEST_TEXT, computed, converted, negated, short, torch_dtype
from rlaudit.configs.syntax.python_options import options_of
from rlaudit.configs.syntax.python_program import Around, Program, program_of
from rlaudit.configs.syntax.python_scopes import Function, Scope, scope_of
from rlaudit.configs.syntax.python_text import PythonText, parse

DEEPEST = 60
MOST_VALUES = 20_000
MOST_SITES = 8


NOTHING_GIVEN: Mapping[str, Any] = {}


class PythonValues:
    """Expressions of one text as nodes, as far as the text tells them.

    opaque: names of functions whose results are not followed. taken: options that were taken at their defaults since
    the list was emptied. given: options that the command line says, by name. Raises UnreadableText.
    """

    def __init__(
        self, text: str, path: str, opaque: frozenset[str] = frozenset(), given: Mapping[str, Any] = NOTHING_GIVEN
    ) -> None:
        self.tree, self.opaque = parse(text), opaque
        self.text = PythonText(text, path)
        self.program: Program = program_of(self.tree)
        self.taken: list[str] = []
        self._options, self._given = options_of(self.tree), given
        self._scopes: dict[ast.AST, Scope] = {}
        self._count = 0

    def scope(self, functions: Around) -> Scope:
        """The scope of the innermost function."""
        key = functions[-1] if functions else self.tree
        if key not in self._scopes:
            above = self.scope(functions[:-1]) if functions else None
            self._scopes[key] = scope_of(key, getattr(key, "name", ""), above)
        return self._scopes[key]

    def node(self, expression: ast.expr, scope: Scope, setting: str, key: Place | None, depth: int) -> Node:
        """An expression as a node."""
        place = self.text.place(expression, setting)
        value = self.value(expression, scope, setting, depth)
        text = self.text.source(place) if not isinstance(value, dict | tuple) else ""
        return Node(value, place, key, text)

    def value(self, expression: ast.expr, scope: Scope, setting: str, depth: int) -> Any:  # noqa: PLR0911, PLR0912 - one for each kind of expression
        """What an expression evaluates to, or Unknown."""
        self._count += 1
        if depth > DEEPEST or self._count > MOST_VALUES:
            return Unknown("the expression is nested too deeply")
        if isinstance(expression, ast.Constant):
            constant = expression.value
            return constant if constant is None or isinstance(constant, bool | int | float | str) else Unknown("bytes")
        if isinstance(expression, ast.Dict):
            return self._mapping(expression, scope, setting, depth)
        if isinstance(expression, ast.List | ast.Tuple | ast.Set):
            return tuple(self.node(one, scope, setting, None, depth + 1) for one in expression.elts)
        if isinstance(expression, ast.Name):
            return self._name(expression.id, scope, setting, depth)
        if isinstance(expression, ast.UnaryOp):
            return negated(expression.op, self.value(expression.operand, scope, setting, depth + 1))
        if isinstance(expression, ast.BinOp):
            left = self.value(expression.left, scope, setting, depth + 1)
            return computed(expression.op, left, self.value(expression.right, scope, setting, depth + 1))
        if isinstance(expression, ast.JoinedStr):
            return self._joined(expression, scope, depth)
        if isinstance(expression, ast.Call):
            return self._result(expression, scope, setting, depth)
        if isinstance(expression, ast.IfExp):
            return self._either(expression, scope, setting, depth)
        if isinstance(expression, ast.DictComp) and (copied := _copied(expression)) is not None:
            return self._copy(expression, self.value(copied, scope, setting, depth + 1))
        dtype = torch_dtype(expression) if isinstance(expression, ast.Attribute) else ""
        if isinstance(expression, ast.Attribute) and not dtype:
            default = self._option(expression, scope)
            if default is not None:
                return self.value(default, self.scope(()), setting, depth + 1)
            kept = self._attribute(expression, scope)
            if kept is not None:
                value = self.value(kept[0], self.scope(kept[1]), setting, depth + 1)
                return self._changed(expression, value, scope, depth)
        return dtype or Unknown(f"{short(expression)} is known only when it runs")

    def _either(self, expression: ast.IfExp, scope: Scope, setting: str, depth: int) -> Any:
        """Of `a if c else b`, the one that a switch of the program takes, or what both are; else what it can be."""
        switch = self.value(expression.test, scope, setting, depth + 1)
        if isinstance(switch, bool | None):
            return self.value(expression.body if switch else expression.orelse, scope, setting, depth + 1)
        ends = [self.value(one, scope, setting, depth + 1) for one in (expression.body, expression.orelse)]
        if any(isinstance(one, dict | tuple) for one in ends):
            return Unknown(f"{short(expression)} is known only when it runs")
        if not any(isinstance(one, Unknown) for one in ends) and ends[0] == ends[1] and type(ends[0]) is type(ends[1]):
            return ends[0]
        among = [value for one in ends for value in (one.among if isinstance(one, Unknown) else (one,))]
        open_ended = any(isinstance(one, Unknown) and not one.among for one in ends)
        return Unknown(f"{short(expression)} is known only when it runs", () if open_ended else tuple(among))

    def _copy(self, expression: ast.DictComp, value: Any) -> Any:
        """A dictionary taken over key by key. What a filter leaves out depends on it: on the arguments that a class
        takes, most often, so that those it does take arrive as they are written.
        """
        filters = expression.generators[0].ifs
        if not isinstance(value, dict) or not filters or REST in value:
            return value
        why = Unknown(f"only what `{short(filters[0])}` lets through")
        return {**value, REST: Node(why, self.text.place(expression, ""))}

    def _mapping(self, expression: ast.Dict, scope: Scope, setting: str, depth: int) -> Any:
        """A dictionary display; unpacked dictionaries are merged in, unknown ones leave REST behind."""
        entries: dict[str, Node] = {}
        for key, value in zip(expression.keys, expression.values, strict=True):
            if key is None:
                inner = self.node(value, scope, setting, None, depth + 1)
                if isinstance(inner.value, dict):
                    entries.update(inner.value)
                else:
                    entries[REST] = inner
                continue
            name = self.value(key, scope, setting, depth + 1)
            if not isinstance(name, str):
                return name if isinstance(name, Unknown) else Unknown("a key of the dictionary is no text")
            entries[name] = self.node(value, scope, name, self.text.place(key, name), depth + 1)
        return entries

    def _name(self, name: str, scope: Scope, setting: str, depth: int) -> Any:
        """The value of a variable."""
        home = scope.find(name)
        if home is None:
            return Unknown(f"{name} is assigned nowhere in this file")
        assigned = home.values[name]
        given = self._argument(name, home, depth) if name in home.parameters else None
        if given is not None:
            value = given
        elif name in home.spoilt:
            why, later, at = home.spoilt[name], home.mutated.get(name, []), home.spoilt_at.get(name, 0)
            value = self._spoilt(assigned, home, setting, depth, Unknown(why))
            earlier = [(key, entry, why) for key, entry, _ in later[:at] if isinstance(value, dict)]
            return self.mutated([*earlier, *later[at:]], home, value, depth)
        elif assigned is None:
            return Unknown(f"{name} is assigned more than once, or under a condition")
        else:
            value = self.value(assigned, home, setting, depth + 1)
        return self.mutated(home.mutated.get(name, []), home, value, depth)

    def mutated(self, later: list[tuple[str, ast.expr | None, str]], home: Scope, value: Any, depth: int) -> Any:
        """A dictionary with the keys that it gets after it is made; of one that is not known, these are known."""
        if not later or not isinstance(value, dict | Unknown):
            return value
        at = self.text.place(later[0][1] or ast.Constant(None, lineno=1, col_offset=0), "")
        value = dict(value) if isinstance(value, dict) else {REST: Node(value, at)}
        for key, entry, why in later:
            if entry is None:
                value.pop(key, None)
                continue
            node = self.node(entry, home, key, None, depth + 1)
            value[key] = replace(node, value=Unknown(why)) if why else node
        return value

    def _attribute(self, expression: ast.Attribute, scope: Scope) -> tuple[ast.expr, Around] | None:
        """What `self.name` is set to, where its class does so once."""
        if not isinstance(expression.value, ast.Name) or expression.value.id != "self" or scope.function is None:
            return None
        owner = self.program.owners.get(scope.function)
        found = self.program.attributes.get((owner, expression.attr), []) if owner is not None else []
        return found[0] if len(found) == 1 else None

    def _option(self, expression: ast.Attribute, scope: Scope) -> ast.expr | None:
        """The default of an option of the program: of `args.name`, also where `self.args` is `args`."""
        base: ast.expr = expression.value
        if isinstance(base, ast.Attribute) and (kept := self._attribute(base, scope)) is not None:
            base = kept[0]
        if not isinstance(base, ast.Name):
            return None
        if expression.attr in self._given and expression.attr in self._options.holders.get(base.id, {}):
            said = self._given[expression.attr]
            told: ast.expr = ast.Name("what the command line says") if isinstance(said, Unknown) else ast.Constant(said)
            return ast.copy_location(told, expression)
        default = self._options.default(base.id, expression.attr)
        if default is not None:
            self.taken.append(expression.attr)
        return default

    def _changed(self, expression: ast.Attribute, value: Any, scope: Scope, depth: int) -> Any:
        """A dictionary that `self.name` holds, with the keys that it gets later in the method that made it."""
        owner = self.program.owners.get(scope.function, "") if scope.function is not None else ""
        changes = self.program.changes.get((owner, expression.attr), [])
        if not isinstance(value, dict) or not changes:
            return value
        value = dict(value)
        (_, made), *_ = self.program.attributes[owner, expression.attr]
        for change in changes:
            if change.key is None:
                why = Unknown(f"self.{expression.attr} is changed in a way that is known only when it runs")
                value = {key: replace(node, value=why) for key, node in value.items()}
                value[REST] = Node(why, self.text.place(expression, ""))
                continue
            node = self.node(change.value, self.scope(change.around), change.key, None, depth + 1)
            sure = change.always and change.around == made
            why = Unknown(f'self.{expression.attr}["{change.key}"] is set under a condition, or in another method')
            value[change.key] = node if sure else replace(node, value=why)
        return value

    def _argument(self, name: str, home: Scope, depth: int) -> Any:
        """What the calls of a function in this file pass for a parameter; None where it has none, or too many.

        Unknown where they differ.
        """
        function = home.function
        sites = self.program.sites(function) if function is not None else []
        if function is None or not sites or len(sites) > MOST_SITES or depth > DEEPEST // 2:
            return None
        values = [self._passed(name, function, home, call, self.scope(around), depth) for call, around in sites]
        plain = [Node(value, self.text.place(sites[0][0], "")).plain() for value in values]
        if all(one == plain[0] for one in plain):
            return values[0]
        return Unknown(f"the calls of {function.name}() in this file differ in {name}")

    def _passed(self, name: str, function: Function, home: Scope, call: ast.Call, scope: Scope, depth: int) -> Any:  # noqa: PLR0911 - one for each way to pass it
        """What one call of a function passes for one of its parameters."""
        declared = function.args
        words = [one.arg for one in (*declared.posonlyargs, *declared.args)]
        is_method = function in self.program.owners
        positions = words[1:] if is_method else words
        unpacked = [one for one in call.keywords if one.arg is None]
        mappings = [self.value(one.value, scope, name, depth + 1) for one in unpacked]
        if any(isinstance(one, ast.Starred) for one in call.args):
            return Unknown(f"{function.name}() gets a starred argument")
        given = {one.arg: one.value for one in call.keywords if one.arg is not None}
        if declared.kwarg is not None and name == declared.kwarg.arg:
            taken = {*words, *(one.arg for one in declared.kwonlyargs)}
            return self._rest(call, taken, mappings, scope, depth)
        if name in given:
            return self.value(given[name], scope, name, depth + 1)
        if name in positions and positions.index(name) < len(call.args):
            return self.value(call.args[positions.index(name)], scope, name, depth + 1)
        for mapping in mappings:
            if not isinstance(mapping, dict) or REST in mapping:
                return mapping if isinstance(mapping, Unknown) else Unknown(f"{name} may be among unknown keywords")
            if name in mapping:
                return mapping[name].value
        defaults = dict(zip(reversed(words), reversed(declared.defaults), strict=False))
        defaults |= {
            one.arg: value for one, value in zip(declared.kwonlyargs, declared.kw_defaults, strict=True) if value
        }
        if name in defaults and home.above is not None:
            return self.value(defaults[name], home.above, name, depth + 1)
        return Unknown(home.spoilt.get(name, f"{name} is not passed"))

    def _rest(self, call: ast.Call, taken: set[str], mappings: list[Any], scope: Scope, depth: int) -> dict[str, Node]:
        """The keywords of a call that no parameter takes: what `**kwargs` gets."""
        entries: dict[str, Node] = {}
        for mapping in mappings:
            unknown = mapping if isinstance(mapping, Unknown) else Unknown("it is not a dictionary")
            entries |= mapping if isinstance(mapping, dict) else {REST: Node(unknown, self.text.place(call, ""))}
        for one in call.keywords:
            if one.arg is not None:
                entries[one.arg] = self.node(one.value, scope, one.arg, self.text.keyword_place(one), depth + 1)
        return {key: node for key, node in entries.items() if key not in taken}

    def _spoilt(self, assigned: ast.expr | None, home: Scope, setting: str, depth: int, why: Unknown) -> Any:
        """A value that changes later: of a dictionary it is known that its keys are there, and no more."""
        value = self.value(assigned, home, setting, depth + 1) if assigned is not None else why
        if assigned is None or not isinstance(value, dict):
            return why
        rest = Node(why, self.text.place(assigned, ""), None, "")
        return {key: replace(node, value=why) for key, node in value.items()} | {REST: rest}

    def _joined(self, expression: ast.JoinedStr, scope: Scope, depth: int) -> Any:
        """An f-string of known parts."""
        text = ""
        for part in expression.values:
            if isinstance(part, ast.FormattedValue):
                value = self.value(part.value, scope, "", depth + 1)
                if not isinstance(value, bool | int | float | str) or part.format_spec is not None:
                    return value if isinstance(value, Unknown) else Unknown("it is formatted when it runs")
                text += str(value)
            elif isinstance(part, ast.Constant):
                text += str(part.value)
        return text[:LONGEST_TEXT] if len(text) <= LONGEST_TEXT else Unknown("it is a very long text")

    def _result(self, expression: ast.Call, scope: Scope, setting: str, depth: int) -> Any:
        """`dict(a=1)`, `json.dumps({...})`, `os.environ.get("X", default)` and the like."""
        function = ast.unparse(expression.func) if isinstance(expression.func, ast.Name | ast.Attribute) else ""
        if function == "dict" and len(expression.args) <= 1:
            entries: dict[str, Node] = {}
            for argument in expression.args:
                inner = self.value(argument, scope, setting, depth + 1)
                if not isinstance(inner, dict):
                    return Unknown("dict(...) of something that is not a literal")
                entries.update(inner)
            for keyword in expression.keywords:
                if keyword.arg is None:
                    more = self.node(keyword.value, scope, setting, None, depth + 1)
                    entries.update(more.value if isinstance(more.value, dict) else {REST: more})
                else:
                    where = self.text.keyword_place(keyword)
                    entries[keyword.arg] = self.node(keyword.value, scope, keyword.arg, where, depth + 1)
            return entries
        if function in {"int", "float", "str", "bool"} and len(expression.args) == 1 and not expression.keywords:
            return converted(function, self.value(expression.args[0], scope, setting, depth + 1))
        if function in {"os.environ.get", "os.getenv", "environ.get", "getenv"} and expression.args:
            variable = self.value(expression.args[0], scope, setting, depth + 1)
            return Unknown(f"the environment variable {variable} decides")
        returned = self._returned(expression.func, scope)
        if returned is not None:
            return self.value(returned[0], self.scope(returned[1]), setting, depth + 1)
        return Unknown(f"{short(expression)} is known only when it runs")

    def _returned(self, function: ast.expr, scope: Scope) -> tuple[ast.expr, Around] | None:
        """What a function of this file returns, where it does so in one place."""
        is_own = isinstance(function, ast.Attribute) and getattr(function.value, "id", "") == "self"
        name = function.id if isinstance(function, ast.Name) else function.attr if is_own else ""  # type: ignore[attr-defined]
        found = self.program.functions.get(name, [])
        if len(found) != 1 or name in self.opaque:
            return None
        defined, around = found[0]
        returns = [one.value for one in ast.walk(defined) if isinstance(one, ast.Return) and one.value is not None]
        return (returns[0], (*around, defined)) if len(returns) == 1 else None


def _copied(expression: ast.DictComp) -> ast.expr | None:
    """The dictionary that `{key: value for key, value in it.items() if ...}` takes its entries from."""
    match expression:
        case ast.DictComp(
            key=ast.Name(id=key),
            value=ast.Name(id=value),
            generators=[ast.comprehension(
                target=ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)]),
                iter=ast.Call(func=ast.Attribute(value=mapping, attr="items"), args=[]),
            )],
        ) if (key, value) == (first, second):  # fmt: skip
            return mapping
    return None
