"""The fault that plants each cause of rlaudit/causes in a simulated world: a file of the cause's name binds FAULT."""

import importlib
import pkgutil

from worlds.fault import Fault


def all_faults() -> dict[str, Fault]:
    """Return every fault by the name of the cause that it plants."""
    modules = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name.replace("_", "-"): importlib.import_module(f"{__name__}.{name}").FAULT for name in modules}
