"""Finds what a package's files offer, so that adding one is adding a file.

A factor, a metric, a cause, a rule, a reader or a picture is a module that binds one agreed name (`FACTOR`, `METRIC`,
...). What takes several files is a folder: at least one of its files binds the name, the others are its parts. There is
no registry to edit and no plug-in interface.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TypeVar

Offer = TypeVar("Offer")


class Offers(dict[str, Offer]):
    """What the files of a package offer, by name, alphabetically; and what each file says of it."""

    def __init__(self, bound: Mapping[str, tuple[ModuleType, Offer]]) -> None:
        """bound: the module that binds an offer, and the offer."""
        super().__init__({name: offer for name, (_, offer) in sorted(bound.items())})
        self._modules = {name: module for name, (module, _) in bound.items()}

    def documentation(self, name: str) -> str:
        """Return the docstring of the module that binds an offer, wherever the functions of the offer were written."""
        return inspect.getdoc(self._modules[name]) or ""


def discover(package: ModuleType, name: str, kind: type[Offer]) -> Offers[Offer]:
    """Return every `name` bound in the modules of `package` and its folders, by the offer's own `.name`.

    Raises TypeError when a module, or a whole folder, does not bind `name` to a `kind`, and ValueError when two share a
    name: both are mistakes in the file that was added, found by the first test that runs.
    """
    found: dict[str, tuple[ModuleType, Offer]] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        bound = list(_bound_in(module, name)) if module_info.ispkg else [(module, getattr(module, name, None))]
        if not bound:
            raise TypeError(f"a file of {module.__name__} must bind {name} to a {kind.__name__}")
        for where, offer in bound:
            if not isinstance(offer, kind):
                raise TypeError(f"{where.__name__} must bind {name} to a {kind.__name__}")
            key: str = getattr(offer, "name")  # noqa: B009 - kind is a type variable, its attributes are not known here
            if key in found:
                raise ValueError(f"{where.__name__}: {name} {key!r} is already offered by another file")
            found[key] = (where, offer)
    return Offers(found)


def _bound_in(folder: ModuleType, name: str) -> Iterator[tuple[ModuleType, object]]:
    """Yield the files of a folder that bind `name`, with what they bind. Its other files are not imported for that:
    some are needed late, or never.
    """
    for module_info in pkgutil.iter_modules(folder.__path__):
        text = (Path(folder.__path__[0]) / f"{module_info.name}.py").read_text(encoding="utf-8")
        if _binds(text, name):
            module = importlib.import_module(f"{folder.__name__}.{module_info.name}")
            yield module, getattr(module, name)


def _binds(text: str, name: str) -> bool:
    """Return whether a statement of the file assigns `name`, with an annotation or without. Its lines are searched:
    parsing all files of all folders took a sixth of the time in which a small config is inspected.
    """
    return re.search(rf"^{name}(:[^=\n]*)? = ", text, re.MULTILINE) is not None
