"""A rollout backend that a fork adds, under a name that begins with vLLM's: `vllm_http` if the framework has `vllm`.

Sampling, trainer and objective are still the framework's. What the framework's own worker adds to the engine's
arguments or leaves out of them says nothing of another worker: the written arguments are known, and any other may be
given besides.
"""

from dataclasses import replace
from typing import Any

from rlaudit.configs.draft import Settings, unwritten
from rlaudit.configs.elsewhere import as_written, leave_open
from rlaudit.settings.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.settings.trainer_facts import OF_UPDATES

VLLM = "vllm"
# What the worker and the way it is updated decide, and the trainer does not.
_OF_THE_WORKER = {*OF_UPDATES, "seeds_replicas", "rollout_head_dtype", "shares_weights"} - {"weight_updates"}


def runs_vllm(backend: Any) -> bool:
    """Return whether the value of a backend's key is vLLM, or the name of a backend that a fork builds on top of it."""
    return isinstance(backend, str) and backend.startswith(VLLM)


def with_own_backend(config: RolloutConfig, title: str, key: str, backend: Any) -> RolloutConfig:
    """Return a config as it is if `backend` is the framework's own, else without what only that backend decides.

    title: the framework's. key: the one whose value the backend is.
    """
    if not runs_vllm(backend) or backend == VLLM:
        return config
    name = f"{backend}, a backend that is not {title}'s own"
    sampling = Settings({name: one for name, one in config.sampling.items() if one.place is not None})
    leave_open(sampling, f"{name} may add it to its requests")
    options = {one.name: Setting(one.name, one.written, one.written, Origin.FILE, one.place) for one in config.lost}
    left = f"what {key} {backend} hands to vLLM beside what is written: it is not {title}'s own"
    # No key is written for the user: it is not known which ones the backend reads.
    return replace(
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
