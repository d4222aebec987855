"""A server and the trainer that samples from it, started by one script, joined to one config.

Each of the two leaves open what the other decides. They are joined if a script starts one of each, and their models are
not known to differ: a judge or a teacher has a server as well. The trainer may be a Python program that the
script starts and that lies beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.settings.rollout_config import Origin, RolloutConfig, Setting


def joined(configs: Sequence[RolloutConfig], plain: Sequence[RolloutConfig] = ()) -> tuple[RolloutConfig, ...]:
    """Return the configs of a script in their order, the trainer's in its server's place.

    plain: servers of vLLM itself that the script starts; the trainer's is one that has the same model.
    """
    trainers = [config for config in configs if asks_a_server(config)]
    trainers = trainers or [config for config in configs if _leaves_the_mode(config)]
    if len(trainers) != 1:
        return tuple(configs)
    (trainer,) = trainers
    started = [config for config in configs if _serves(config)]
    servers = [config for config in started if _same_model(config, trainer) is not False]
    servers = servers or [config for config in plain if not config.offline and _same_model(config, trainer)]
    if len(started) > 1 or len(servers) != 1:
        return tuple(configs)
    (server,) = servers
    others = (config for config in configs if config not in started)
    return tuple(_together(server, trainer) if config is trainer else config for config in others)


def waits_for_a_trainer(configs: Sequence[RolloutConfig]) -> bool:
    """Return whether a script starts a framework's server, and no trainer that is read."""
    return any(map(_serves, configs)) and not any(map(asks_a_server, configs))


def asks_a_server(config: RolloutConfig) -> bool:
    """Return whether a config is of a trainer that samples from an engine whose start is not in the config."""
    return _is_of_another(config.engine) and not isinstance(config.sampling, Elsewhere)


def _serves(config: RolloutConfig) -> bool:
    """Return whether a config is of a framework's server, whose trainer decides the sampling."""
    return _is_of_another(config.sampling) and not asks_a_server(config)


def _is_of_another(settings: Mapping[str, Setting]) -> bool:
    """Return whether another command decides the settings; two engines of one file are not each other's server."""
    return isinstance(settings, Elsewhere) and bool(settings.sentence)


def _leaves_the_mode(config: RolloutConfig) -> bool:
    """Return whether the framework's default decides if the trainer asks a server, in TRL's and ms-swift's key."""
    mode = config.options.get("vllm_mode")
    return mode is not None and mode.origin is Origin.FRAMEWORK


def _same_model(server: RolloutConfig, trainer: RolloutConfig) -> bool | None:
    """Return whether both have the same model; None if that is unknown."""
    if server.model is None or trainer.model is None or not (server.model.known and trainer.model.known):
        return None
    return bool(server.model.value == trainer.model.value)


def _together(server: RolloutConfig, trainer: RolloutConfig) -> RolloutConfig:
    elsewhere = (trainer.path,) if trainer.path != server.path else ()
    if not asks_a_server(trainer):
        line = server.place.line if server.place else 1
        idle = f"the server in line {line} was not read: this trainer builds its engine itself"
        parts, not_seen = (*elsewhere, *trainer.parts), (*trainer.not_seen, idle)
        return replace(trainer, path=server.path, place=server.place, parts=parts, not_seen=not_seen)
    answered = {part.sentence for part in (server.sampling, trainer.engine) if isinstance(part, Elsewhere)}
    sentences = (sentence for sentence in (*server.not_seen, *trainer.not_seen) if sentence not in answered)
    written = {name: setting for name, setting in trainer.engine.items() if setting.place is not None}
    return replace(
        trainer,
        path=server.path,
        engine={**written, **server.engine},
        environment=server.environment,
        trainer={**server.trainer, **trainer.trainer},
        options={**server.options, **trainer.options},
        lost=(*server.lost, *trainer.lost),
        model=server.model or trainer.model,
        offline=server.offline,
        placed_by_ray=server.placed_by_ray,
        place=server.place,
        not_seen=tuple(dict.fromkeys(sentences)),
        parts=(*server.parts, *elsewhere, *trainer.parts),
        decided={**server.decided, **trainer.decided},
        refused_pin=server.refused_pin or trainer.refused_pin,
        unused_pin=server.unused_pin or trainer.unused_pin,
        lost_updates=(*server.lost_updates, *trainer.lost_updates),
        version_guards=tuple(dict.fromkeys((*server.version_guards, *trainer.version_guards))),
        write=server.write,
    )
