"""Engine arguments that make a release compile, or capture CUDA graphs, each without the other.

`enforce_eager` turns both off, and a difference that it makes belongs to one of the two: in NeMo-RL (issues 998 and
1014) to Inductor alone. Both are parts of vLLM's compilation_config, under names that changed:

    compile off     use_inductor=False up to 0.11.2, backend="eager" from then on: the model is traced, split and
                    captured as before, but Inductor does not write the kernels
    cudagraphs off  cudagraph_mode="NONE" from 0.10.1 on, use_cudagraph=False before

0.8.5 and 0.9.0 overrule both (config.py, VllmConfig.__post_init__), as the loaded configuration then shows. V0 compiles
nothing, so enforce_eager changes only graphs; a CPU has no graphs, so it changes only compiling.
Source: vllm/compilation/backends.py (make_compiler), vllm/config/compilation.py, 0.8.5 to 0.32.0.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from rlaudit.errors import UsageError
from rlaudit.files.parse_json import parse_json
from rlaudit.vllm.catalogue import Catalogue

CONFIG = "compilation_config"
# The keys of a configuration that decide on either.
COMPILE_KEYS = ("mode", "level", "backend", "use_inductor")
GRAPH_KEYS = ("cudagraph_mode", "use_cudagraph", "full_cuda_graph")


def execution_args(
    version: str, engine_args: Mapping[str, Any], compiles: bool | None, captures: bool | None, device: str
) -> dict[str, Any]:
    """Return engine arguments with compiling and capturing as requested; None leaves either unchanged.

    Raises UsageError if compilation_config is neither a mapping nor a level.
    """
    if compiles is None and captures is None:
        return dict(engine_args)
    other_args = {name: value for name, value in engine_args.items() if name not in ("enforce_eager", CONFIG)}
    eager = engine_args.get("enforce_eager") is True
    if device == "cpu":
        return {**engine_args, "enforce_eager": eager if compiles is None else not compiles}
    config = {
        name: value
        for name, value in _as_mapping(engine_args.get(CONFIG), version).items()
        if not (compiles and name in COMPILE_KEYS) and not (captures and name in GRAPH_KEYS)
    }
    if compiles is False or (compiles is None and eager):
        config |= _without_compiling(version)
    if captures is False or (captures is None and eager):
        config |= _without_graphs(version)
    return {**other_args, **({CONFIG: config} if config else {})}


def _without_compiling(version: str) -> dict[str, Any]:
    return {"use_inductor": False} if _knows("use_inductor", version) else {"backend": "eager"}


def _without_graphs(version: str) -> dict[str, Any]:
    return {"cudagraph_mode": "NONE"} if _knows("cudagraph_mode", version) else {"use_cudagraph": False}


def _knows(name: str, version: str) -> bool:
    return f"{CONFIG}.{name}" in Catalogue.at(Version(version)).nested


def _as_mapping(config: Any, version: str) -> dict[str, Any]:
    """Return compilation_config as a mapping: vLLM also takes JSON, and a number for the level (now the mode)."""
    if isinstance(config, str):
        with contextlib.suppress(ValueError):
            config = parse_json(config)
    if config is None:
        return {}
    if isinstance(config, Mapping):
        return dict(config)
    if isinstance(config, int) and not isinstance(config, bool):
        return {"mode" if _knows("mode", version) else "level": config}
    raise UsageError(
        f"{CONFIG} is {config!r}, which is neither a mapping nor a level",
        "write it as a mapping where a factor is to change a part of it",
    )
