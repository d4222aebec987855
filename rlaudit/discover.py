"""Find what a package's files offer, so that adding one is adding a file.

A factor, a metric, a cause, a rule, a reader or a picture is a module that binds one agreed name (`FACTOR`, `METRIC`,
...). There is no registry to edit and no plug-in interface.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
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
    """Return every `name` bound in the modules of `package`, by the offer's own `.name`.

    Raises TypeError when a module does not bind `name` to a `kind`, and ValueError when two share a name: both are
    mistakes in the file that was added, found by the first test that runs.
    """
    offers: dict[str, tuple[ModuleType, Offer]] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        offer = getattr(module, name, None)
        if not isinstance(offer, kind):
            raise TypeError(f"{module.__name__} must bind {name} to a {kind.__name__}")
        key: str = getattr(offer, "name")  # noqa: B009 - kind is a type variable, its attributes are not known here
        if key in offers:
            raise ValueError(f"{module.__name__}: {name} {key!r} is already offered by another file")
        offers[key] = (module, offer)
    return Offers(offers)
