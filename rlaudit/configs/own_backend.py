"""A rollout backend of a fork's own, whose name begins with vLLM's: `vllm_http` where the framework knows `vllm`.

Sampling, trainer and objective are the framework's all the same. What the framework's own worker adds to the engine's
arguments or leaves out of them says nothing of another worker: the arguments are those that are written, and any other
may be there. Where the tree has files of the backend's name, what they hand to vLLM is theirs to decide.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from packaging.version import Version

from rlaudit.configs.draft import Settings, by_code, unwritten
from rlaudit.configs.elsewhere import Elsewhere, as_written, leave_open
from rlaudit.configs.framework_source.checkout import Checkout, shown
from rlaudit.configs.rollout_config import OF_UPDATES, Origin, RolloutConfig, Setting
from rlaudit.configs.source import LARGEST_BYTES, Source
from rlaudit.configs.syntax.node import Unknown
from rlaudit.read_regular import read_regular

VLLM = "vllm"
# What the worker and the way it is updated decide, and the trainer does not.
_OF_THE_WORKER = {*OF_UPDATES, "seeds_replicas", "rollout_head_dtype", "shares_weights"} - {"weight_updates"}
_MOST_FILES = 20


def runs_vllm(backend: Any) -> bool:
    """Whether the value of a backend's key is vLLM, or the name of a backend of somebody's own on top of it."""
    return isinstance(backend, str) and backend.startswith(VLLM)


def with_own_backend(
    config: RolloutConfig, title: str, key: str, backend: Any, checkout: Checkout | None, vllm: Version
) -> RolloutConfig:
    """A config as it is where `backend` is the framework's own; else without what only that one decides.

    title: the framework's. key: the one whose value the backend is.
    """
    if not runs_vllm(backend) or backend == VLLM:
        return config
    name = f"{backend}, a backend that is not {title}'s own"
    sampling = Settings({name: one for name, one in config.sampling.items() if one.place is not None})
    leave_open(sampling, f"{name} may add it to its requests")
    options = {one.name: Setting(one.name, one.written, one.written, Origin.FILE, one.place) for one in config.lost}
    files = tuple(_files(checkout, backend)) if checkout is not None else ()
    where = f": {', '.join(shown(file.path) for file in files)}" if files else ""
    left = f"what {key} {backend} hands to vLLM beside what is written: it is not {title}'s own{where}"
    # No key is written for the user where nobody knows who reads it.
    kept = replace(
        config,
        engine=as_written(config.engine, name),
        sampling=sampling,
        environment={name: one for name, one in config.environment.items() if one.place is not None},
        trainer={name: one for name, one in config.trainer.items() if name not in _OF_THE_WORKER},
        options={**options, **config.options},
        lost=(),
        not_seen=(*config.not_seen, left),
        decided={name: one for name, one in config.decided.items() if name in config.trainer},
        write=unwritten,
    )
    return _with_files(kept, files, vllm)


def _files(checkout: Checkout, backend: str) -> Iterator[Source]:
    """Files of the package that have the backend's name, or lie in a folder that has it."""
    package = Path(checkout.root, checkout.folder)
    try:
        found = sorted({*package.rglob(f"{backend}.py"), *package.rglob(f"{backend}/*.py")})
    except OSError:
        return
    for path in found[:_MOST_FILES]:
        try:
            yield Source(str(path), read_regular(path, LARGEST_BYTES, "no source").decode("utf-8"))
        except (OSError, ValueError):
            continue


def _with_files(config: RolloutConfig, files: tuple[Source, ...], vllm: Version) -> RolloutConfig:
    """The config with what the backend's own files decide."""
    # Reading Python costs start-up time that other files should not pay.
    from rlaudit.configs.dialects.vllm.python import DIALECT as PYTHON

    engine, environment, read = dict(config.engine), dict(config.environment), list[str]()
    for file in files:
        if not PYTHON.recognise(file):
            continue
        read.append(file.path)
        for built in PYTHON.read(file, vllm):
            for name, one in built.engine.items():
                if one.place is not None and not isinstance(one.value, Unknown):
                    engine[name] = by_code(name, one.value, f"{shown(one.place.path)}:{one.place.line}")
            for name, one in built.environment.items():
                environment.setdefault(name, replace(one, origin=Origin.FRAMEWORK, place=None))
    reason = config.engine.reason if isinstance(config.engine, Elsewhere) else ""
    return replace(
        config,
        engine=Elsewhere(reason, engine),
        environment=environment,
        parts=tuple(dict.fromkeys((*config.parts, *map(shown, read)))),
    )
