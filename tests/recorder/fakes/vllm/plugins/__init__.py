"""vLLM's door for plug-ins: the load of one is guarded, its call is not (vllm/plugins/__init__.py, all releases)."""

import os
import sys
from importlib.metadata import entry_points

_loaded = False


def load_general_plugins():
    global _loaded  # noqa: PLW0603 - as vLLM has it
    if _loaded:
        return
    _loaded = True
    allowed = os.environ.get("VLLM_PLUGINS")
    for plugin in entry_points(group="vllm.general_plugins"):
        if allowed is not None and plugin.name not in allowed.split(","):
            continue
        try:
            function = plugin.load()
        except Exception:
            print("ERROR failed to load plugin", plugin.name, file=sys.stderr)
            continue
        function()
