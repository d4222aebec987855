"""A trainer of the project's own that builds the engine itself: a copy of a framework's, in the project's tree.

Followed are the imports of the training program, as far as they lead to files of the tree.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rlaudit.configs.framework_source.bindings import calls_in, handed_over, nodes_in
from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.framework_source.program_imports import imported_by
from rlaudit.configs.source import Source

_ENGINES = ("LLM", "EngineArgs", "AsyncEngineArgs")
_BUILDS = re.compile(rf"\b(?:{'|'.join(_ENGINES)})\(")


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
