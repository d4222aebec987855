"""Loads vLLM's compiled operators as the release itself does, in the release's interpreter.

    python - BUILD MODULE...    BUILD is cuda or cpu; without a MODULE, every existing `vllm/_C*.so`

Prints one JSON line last: {"loaded": [module], "unchecked": [module]}. A build for CUDA needs the driver's library to
load; on a machine without a driver (the login node of a cluster) its modules are only located. If anything else is
missing, the program ends with the loader's error.
"""

import ctypes
import importlib
import importlib.util
import json
import sys
from pathlib import Path

DRIVER = "libcuda.so.1"


def main(build, modules):
    """Load the operators; see above."""
    import torch  # noqa: F401 - brings the libraries that vLLM's are linked against

    modules = modules or present_modules()
    if build == "cpu":
        operators = {"loaded": load_for_this_processor(modules), "unchecked": []}
    else:
        operators = load_for_cuda(modules)
    print("\n" + json.dumps(operators))


def present_modules():
    """Return the compiled modules of an unrecorded release."""
    folder = Path(importlib.util.find_spec("vllm").submodule_search_locations[0])
    return ["vllm." + file.name.partition(".")[0] for file in sorted(folder.glob("_C*.so"))]


def load_for_this_processor(modules):
    """Return the modules that the CPU platform loaded.

    It has one for each instruction set (0.17.0 and later). Only its own code knows which of them this machine supports,
    and a wrong one dies of an illegal instruction. If the right one does not load, it only warns.
    """
    from vllm.platforms import current_platform

    # The class decides: an instance of 0.8.5 returns None for any attribute that it lacks.
    if hasattr(type(current_platform), "import_kernels"):
        current_platform.import_kernels()
    else:
        for module in modules:
            importlib.import_module(module)
    mapped = Path("/proc/self/maps").read_text()
    loaded = [module for module in modules if "/" + module.replace(".", "/") + "." in mapped]
    if not loaded:
        names = ", ".join(modules) or "its modules: there are none"
        raise ImportError("vLLM's CPU platform loaded none of " + names + why_not(modules))
    return loaded


def why_not(modules):
    """Return why the only module does not load, such as a newer libc. Of several, none is tried: only one fits."""
    if len(modules) == 1:
        try:
            importlib.import_module(modules[0])
        except ImportError as error:
            return ": %s" % error
    return ""


def load_for_cuda(modules):
    """Load every module that importing the CUDA platform imports."""
    import vllm  # noqa: F401 - distinguishes a broken Python part from a broken compiled one

    if not modules:
        raise ImportError("vLLM brings no compiled module vllm/_C*.so")
    driver = loads(DRIVER)
    for module in modules:
        if driver:
            importlib.import_module(module)
        elif importlib.util.find_spec(module) is None:
            raise ImportError("No module named " + repr(module))
    return {"loaded": modules if driver else [], "unchecked": [] if driver else modules}


def loads(library):
    """Return whether the dynamic loader can load a library."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
