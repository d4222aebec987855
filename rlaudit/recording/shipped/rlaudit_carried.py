"""The recorder's folder and settings on an engine's configuration, for processes that have lost the variable.

vLLM hands its resolved configuration to every engine core and worker, on any host. The environment is another
matter: Ray's executor copies listed variables, and programs clean it. So the front end leaves a plain dictionary on the
configuration: it can be unpickled without this module, and no hash of vLLM's reads what is no field. A process that
vLLM's own door brings here finds it in the frames that called: vLLM loads plug-ins in `EngineCore.__init__` (not in
0.8.5) and in `WorkerWrapperBase.init_worker`, which hold the configuration by then.
Not covered: a process in which this module cannot be imported. Standard library and Python 3.9.
"""

import os
import sys

ATTRIBUTE = "rlaudit_recording"


def leave(config, folder, settings):
    """Put folder and settings onto a resolved configuration."""
    # Past what a class does when an attribute is set: from 0.9 on they are checked dataclasses.
    object.__setattr__(config, ATTRIBUTE, {"folder": os.path.abspath(folder), "settings": dict(settings)})


def find():
    """Return what was left on the configuration that a caller holds; None if no caller has one."""
    frame = sys._getframe(1)
    while frame is not None:
        variables = frame.f_locals
        for config in (variables.get("vllm_config"), _attributes(variables.get("self")).get("vllm_config")):
            left = _attributes(config).get(ATTRIBUTE)
            if isinstance(left, dict):
                return left
        frame = frame.f_back
    return None


def _attributes(value):
    """Return an object's attributes without running code of the caller's."""
    attributes = getattr(value, "__dict__", None)
    return attributes if isinstance(attributes, dict) else {}
