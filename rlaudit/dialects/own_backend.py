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
# Facts that the worker and its weight updates decide, and not the trainer.
_OF_THE_WORKER = {*OF_UPDATES, "seeds_replicas", "rollout_head_dtype", "shares_weights"} - {"weight_updates"}


def runs_vllm(backend: Any) -> bool:
    """Return whether a backend is vLLM, or one that a fork builds on top of it."""
    return isinstance(backend, str) and backend.startswith(VLLM)


def with_own_backend(config: RolloutConfig, title: str, key: str, backend: Any) -> RolloutConfig:
    """Return a config without what only the framework's backend decides, if `backend` is another one.

    title: the framework's. key: the one whose value the backend is.
    """
    if not runs_vllm(backend) or backend == VLLM:
        return config
    name = f"{backend}, a backend that is not {title}'s own"
    sampling = Settings({name: setting for name, setting in config.sampling.items() if setting.place is not None})
    leave_open(sampling, f"{name} may add it to its requests")
    lost = {key.name: Setting(key.name, key.written, key.written, Origin.FILE, key.place) for key in config.lost}
    left = f"what {key} {backend} hands to vLLM beside what is written: it is not {title}'s own"
    # No key is written for the user: it is not known which ones the backend reads.
    return replace(
        config,
        engine=as_written(config.engine, name),
        sampling=sampling,
        environment={name: setting for name, setting in config.environment.items() if setting.place is not None},
        trainer={name: setting for name, setting in config.trainer.items() if name not in _OF_THE_WORKER},
        options={**lost, **config.options},
        lost=(),
        not_seen=(*config.not_seen, left),
        decided={name: line for name, line in config.decided.items() if name in config.trainer},
        write=unwritten,
    )
