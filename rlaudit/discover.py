"""Find what a package's files offer, so that adding one is adding a file.

A factor, a metric, a cause, a rule, a reader or a picture is a module that binds one agreed name (`FACTOR`, `METRIC`,
...). There is no registry to edit and no plug-in interface.
"""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeVar

Offer = TypeVar("Offer")


class Offers(dict[str, Offer]):
    """What the files of a package offer, by name, alphabetically, with the documentation of each."""

    def __init__(self, bound: Mapping[str, tuple[ModuleType, Offer]]) -> None:
        """bound: the module that binds an offer, and the offer."""
        super().__init__({name: offer for name, (_, offer) in sorted(bound.items())})
        self._modules = {name: module for name, (module, _) in bound.items()}

    def documentation(self, name: str) -> str:
        """Return the docstring of the module that binds an offer."""
        return inspect.getdoc(self._modules[name]) or ""


def discover(package: ModuleType, name: str, kind: type[Offer]) -> Offers[Offer]:
    """Return every `name` bound in the files of `package`, by the offer's own `.name`.

    Raises TypeError when a module does not bind `name` to a `kind`, and ValueError when two share a name: both are
    mistakes in the file that was added, found by the first test that runs.
    """
    offers: dict[str, tuple[ModuleType, Offer]] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        if module_info.ispkg:  # what the files share
            continue
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        offer = getattr(module, name, None)
        if not isinstance(offer, kind):
            raise TypeError(f"{module.__name__} must bind {name} to a {kind.__name__}")
        key: str = getattr(offer, "name")  # noqa: B009 - kind is a type variable, its attributes are not known here
        if key in offers:
            raise ValueError(f"{module.__name__}: {name} {key!r} is already offered by another file")
        offers[key] = (module, offer)
    return Offers(offers)


@dataclass(frozen=True)
class Written:
    """What a file that is named after an offer says of it."""

    file: Path
    documentation: str
    # The arguments of the call, as they are written.
    values: Mapping[str, ast.expr]


def offered(package: str, name: str, binds: str) -> Written | None:
    """Return an offer as its file writes it; None if the package has no file of that name.

    The file is not run: metrics and causes import numpy and scipy, which takes longer than to read about them.
    """
    file = Path(__file__).parent / package / f"{name.replace('-', '_')}.py"
    if not file.stem.isidentifier() or not file.is_file():
        return None
    module = ast.parse(file.read_text(encoding="utf-8"))
    bound = {ast.unparse(node.targets[0]): node.value for node in module.body if isinstance(node, ast.Assign)}
    call = bound.get(binds)
    if not isinstance(call, ast.Call):
        return None
    values = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    return Written(file, ast.get_docstring(module) or "", values)
