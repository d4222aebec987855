"""A trainer of the project's own that builds the engine itself: a copy of a framework's, in the project's tree.

Followed are the imports of the training program, as far as they lead to files of the tree.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from packaging.version import Version

from rlaudit.configs.framework_source.bindings import calls_in, handed_over, nodes_in
from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.framework_source.program_imports import imported_by
from rlaudit.configs.framework_source.stops import stops_in, stops_of
from rlaudit.configs.rollout_config import Stop
from rlaudit.configs.source import Source

_ENGINES = ("LLM", "EngineArgs", "AsyncEngineArgs")
_BUILDS = re.compile(rf"\b(?:{'|'.join(_ENGINES)})\(")
# What a run that trains with vLLM meets at its first step, in the names of TRL's trainers and of their copies.
_MET = {"use_vllm", "is_main_process", "global_step"}


@dataclass(frozen=True)
class OwnTrainer:
    """file: relative to the checkout's root. name: of the class."""

    checkout: Checkout
    file: str
    name: str

    @property
    def source(self) -> Source:
        """The file with the class."""
        found = self.checkout.file(self.file)
        assert found is not None
        return found

    def stops(self, vllm: Version) -> tuple[Stop, ...]:
        """What stops in a release: lines of the class, which is used, and what is loaded with its file for certain."""
        used = _Used(self.source, self.name)
        inside = [replace(stop, certain=stop.certain or used.reaches(stop.place.line))
                  for stop in stops_in(self.source, vllm, asks_calls=True)
                  if stop.place is not None and (stop.certain or used.holds(stop.place.line))]  # fmt: skip
        told = {stop.where for stop in inside}
        loaded = (
            stop for stop in stops_of(self.checkout, (self.file,), vllm) if stop.certain and stop.where not in told
        )
        return (*inside, *loaded)


class _Used:
    """The lines of a class that are reached in a training run with vLLM: in no branch, in one that builds the engine,
    or in one whose test a training run meets.
    """

    def __init__(self, source: Source, name: str) -> None:
        (self._class,) = [node for node in nodes_in(source) if isinstance(node, ast.ClassDef) and node.name == name][:1]
        self._builds = [node for call in calls_in(source, _ENGINES) for node in self._branches(call.lineno)]

    def holds(self, line: int) -> bool:
        """Whether a line is one of the class."""
        return self._class.lineno <= line <= (self._class.end_lineno or line)

    def reaches(self, line: int) -> bool:
        """Whether every branch that a line lies in is taken."""
        return self.holds(line) and all(branch in self._builds or _is_met(branch) for branch in self._branches(line))

    def _branches(self, line: int) -> list[tuple[ast.stmt, bool]]:
        """Each with whether it is the `else`."""
        found: list[tuple[ast.stmt, bool]] = []
        for node in ast.walk(self._class):
            if isinstance(node, ast.If | ast.For | ast.While | ast.ExceptHandler):
                for part, other in ((node.body, False), (getattr(node, "orelse", []), True)):
                    if part and part[0].lineno <= line <= (part[-1].end_lineno or line):
                        found.append((node, other))  # type: ignore[arg-type]
        return found


def _is_met(branch: tuple[ast.stmt, bool]) -> bool:
    node, other = branch
    if not isinstance(node, ast.If) or other or any(isinstance(part, ast.Not) for part in ast.walk(node.test)):
        return False
    return any(getattr(part, "attr", getattr(part, "id", "")) in _MET for part in ast.walk(node.test))


@lru_cache(maxsize=64)
def own_trainer(program: Source, names: frozenset[str]) -> OwnTrainer | None:
    """The class that builds an engine of these arguments; where several do, the one that the program's code names and
    does not only import. None where that does not settle it.
    """
    found = [(file, name) for file in imported_by(program) for name in _builders(file, names)]
    said = {node.id for node in nodes_in(program) if isinstance(node, ast.Name)} if len(found) > 1 else set()
    chosen = [one for one in found if one[1] in said] or found
    if len(chosen) != 1:
        return None
    file, name = chosen[0]
    path = Path(file.path)
    package = path.parent
    while (package / "__init__.py").exists() and (package.parent / "__init__.py").exists():
        package = package.parent
    return OwnTrainer(Checkout(str(package.parent), package.name), str(path.relative_to(package.parent)), name)


def _builders(file: Source, names: frozenset[str]) -> Iterator[str]:
    """The trainers of a file that call vLLM's engine classes."""
    if "vllm" not in file.text or not _BUILDS.search(file.text) or not handed_over(file, names).blocks:
        return
    lines = [call.lineno for call in calls_in(file, _ENGINES)]
    for node in nodes_in(file):
        if not isinstance(node, ast.ClassDef):
            continue
        trains = "Trainer" in " ".join([node.name, *map(ast.unparse, node.bases)])
        if trains and any(node.lineno <= line <= (node.end_lineno or line) for line in lines):
            yield node.name
