"""Finds what a package's files offer, so that adding one is adding a file.

A factor, a metric, a rule or a report format is a module that binds one agreed name (`FACTOR`, `METRIC`, ...). What
takes several files is a folder: one or more of its files bind the name, the others are its parts. There is no registry
to edit and no plug-in interface.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TypeVar

Offer = TypeVar("Offer")


def discover(package: ModuleType, name: str, kind: type[Offer]) -> dict[str, Offer]:
    """Every `name` bound in the modules of `package` and its folders, by the offer's own `.name`, alphabetically.

    Raises TypeError when a module, or a whole folder, does not bind `name` to a `kind`, and ValueError when two share a
    name: both are mistakes of whoever added the file, found by the first test that runs.
    """
    found: dict[str, Offer] = {}
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
            found[key] = offer
    return dict(sorted(found.items()))


def _bound_in(folder: ModuleType, name: str) -> Iterator[tuple[ModuleType, object]]:
    """The files of a folder that bind `name`, with what they bind. Its parts are not imported to be asked: some are
    wanted late, or never.
    """
    for module_info in pkgutil.iter_modules(folder.__path__):
        text = (Path(folder.__path__[0]) / f"{module_info.name}.py").read_text(encoding="utf-8")
        if f"\n{name} = " in text:
            module = importlib.import_module(f"{folder.__name__}.{module_info.name}")
            yield module, getattr(module, name)
