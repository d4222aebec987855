"""Finds what a package's files offer, so that adding one is adding a file.

A factor, a metric, a rule or a report format is a module that binds one agreed name (`FACTOR`, `METRIC`, ...).
There is no registry to edit and no plug-in interface.
"""

import importlib
import pkgutil
from types import ModuleType
from typing import TypeVar

Offer = TypeVar("Offer")


def discover(package: ModuleType, name: str, kind: type[Offer]) -> dict[str, Offer]:
    """Every `name` bound in the modules of `package`, by the offer's own `.name`, in alphabetical order.

    Raises TypeError when a module does not bind `name` to a `kind`, and ValueError when two share a name: both are
    mistakes of whoever added the file, found by the first test that runs.
    """
    found: dict[str, Offer] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        offer = getattr(module, name, None)
        if not isinstance(offer, kind):
            raise TypeError(f"{module.__name__} must bind {name} to a {kind.__name__}")
        key: str = getattr(offer, "name")  # noqa: B009 - kind is a type variable, its attributes are not known here
        if key in found:
            raise ValueError(f"{module.__name__}: {name} {key!r} is already offered by another file")
        found[key] = offer
    return dict(sorted(found.items()))
