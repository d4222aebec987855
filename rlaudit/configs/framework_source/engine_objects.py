"""Variables of a file that hold an engine or sampling parameters of vLLM, and what is asked of them in vain.

A variable counts where everything that the file assigns to its name is such an object. Followed are the engine inside
an `LLM`, and the executor inside that.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from packaging.version import Version

from rlaudit.configs.syntax.python_program import Program, program_of
from rlaudit.vllm.importable import gone_attribute, is_conditional

CLASSES = ("LLM", "LLMEngine", "AsyncLLMEngine", "AsyncLLM", "SamplingParams")
_INSIDE = {("LLM", "llm_engine"): "LLMEngine"}
_MAKERS = ("from_engine_args", "from_vllm_config")
IN_PROCESS = "VLLM_ENABLE_V1_MULTIPROCESSING"
# Ways to run the engine in the program's own process, as the words of a file.
_WORDS = (IN_PROCESS, "external_launcher")
_BY_NAME = ("hasattr", "getattr", "setattr")


@dataclass(frozen=True)
class EngineObjects:
    """kinds: class by variable, `llm` or `self.llm`. of_class: the same inside one of the file's classes. own:
    attributes that the file itself gives to an object. in_process: whether the file may run the engine in its own
    process.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    in_process: bool = False
    of_class: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def gone(self, node: ast.Attribute, vllm: Version, owner: str = "") -> Iterator[tuple[str, bool]]:
        """What is said of `llm.attribute` where a release has no such attribute, and whether it is there where the
        engine runs in the program's own process. owner: the class of the file that the line stands in.
        """
        kind = self.kind(node.value, owner)
        if kind is None or not isinstance(node.ctx, ast.Load) or node.attr in self.own:
            return
        missing = gone_attribute(kind, node.attr, vllm)
        if missing is None:
            return
        if is_conditional(kind, node.attr, vllm):
            if not self.in_process:
                said = f"takes {node.attr} of the {kind}, which vLLM {vllm} has only with {IN_PROCESS}=0: the engine "
                yield f"{said}runs in a process of its own otherwise", True
            return
        yield f"takes {node.attr} of the {kind}, which that of vLLM {vllm} does not have: {missing.said(vllm)}", False

    def kind(self, node: ast.expr, owner: str = "") -> str | None:
        """The class of vLLM that an expression is known to be of, in a class of the file."""
        if isinstance(node, ast.Attribute) and (kind := self.kind(node.value, owner)) is not None:
            return _INSIDE.get((kind, node.attr))
        name = _spelt(node)
        return self.of_class.get(owner, {}).get(name) or self.kinds.get(name)


@lru_cache(maxsize=64)
def engine_objects(tree: ast.Module) -> EngineObjects:
    """The objects of one file."""
    program = program_of(tree)
    told = _kinds(program, tree)
    inside = {cls.name: _kinds(program, cls) for cls in tree.body if isinstance(cls, ast.ClassDef)} if told else {}
    stored: list[ast.Attribute] = []
    own: set[str] = set()
    words: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            stored.append(node)
        elif isinstance(node, ast.Call) and len(node.args) > 1 and getattr(node.func, "id", "") in _BY_NAME:
            own.add(str(getattr(node.args[1], "value", "")))
        elif isinstance(node, ast.Constant):
            words.add(str(node.value))
    known = {name: kind for name, kind in told.items() if kind is not None}
    of_class = {name: {one: kind for one, kind in kinds.items() if kind is not None} for name, kinds in inside.items()}
    held = {*known, *(name for kinds in of_class.values() for name in kinds)}
    own |= {one.attr for one in stored if _spelt(one.value) in held}
    return EngineObjects(known, frozenset(own), not words.isdisjoint(_WORDS), of_class)


def _kinds(program: Program, part: ast.AST) -> dict[str, str | None]:
    """The class of each variable that part of a file assigns; None where assignments differ."""
    kinds: dict[str, str | None] = {}
    for node in ast.walk(part):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                _assigned(program, target, node.value, kinds)
        elif isinstance(node, ast.arg) and (annotated := _named(program, node.annotation)) is not None:
            _meet(kinds, node.arg, annotated)
    return kinds


def _assigned(program: Program, target: ast.expr, value: ast.expr, kinds: dict[str, str | None]) -> None:
    if isinstance(target, ast.Tuple | ast.List):
        for one in target.elts:
            _meet(kinds, _spelt(one), None)
    elif not (isinstance(value, ast.Constant) and value.value is None):
        _meet(kinds, _spelt(target), _made(program, value))


def _meet(kinds: dict[str, str | None], name: str, kind: str | None) -> None:
    """Two assignments that differ tell nothing."""
    if name:
        kinds[name] = kind if kinds.get(name, kind) == kind else None


def _made(program: Program, value: ast.expr) -> str | None:
    """The class of which a call makes an object: `LLM(...)`, `AsyncLLMEngine.from_engine_args(...)`."""
    if not isinstance(value, ast.Call):
        return None
    function = value.func
    if isinstance(function, ast.Attribute) and function.attr in _MAKERS:
        function = function.value
    return _named(program, function)


def _named(program: Program, node: ast.expr | None) -> str | None:
    """The class of vLLM that a name stands for, None for one of the file's own."""
    if node is None or (isinstance(node, ast.Name) and node.id in program.classes):
        return None
    home, _, name = program.origin(node).rpartition(".")
    return name if name in CLASSES and home.partition(".")[0] == "vllm" else None


def _spelt(node: ast.expr) -> str:
    """`llm` and `self.llm`."""
    if isinstance(node, ast.Name):
        return node.id
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return f"self.{node.attr}" if own else ""  # type: ignore[attr-defined]
