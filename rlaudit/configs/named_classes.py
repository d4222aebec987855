"""Classes that vLLM is told to load by their names: a worker's extension, a worker, a scheduler.

Where the file of one is in the tree, what stops it with a release stops the engine.
"""

from dataclasses import replace

from packaging.version import Version

from rlaudit.configs.framework_source.checkout import checkout_of
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source

_BY_NAME = ("worker_extension_cls", "worker_cls", "scheduler_cls")


def with_named_classes(config: RolloutConfig, source: Source, vllm: Version) -> RolloutConfig:
    """A config with what stops the classes that it names."""
    found = [file for name in _BY_NAME if name in config.engine
             and (file := _file_of(source, config.engine[name].value)) is not None]  # fmt: skip
    if not found:
        return config
    # Reading Python costs start-up time that other files should not pay.
    from rlaudit.configs.framework_source.stops import stops_in

    told = {(stop.where, stop.what) for stop in config.stops}
    stops = (stop for file in dict.fromkeys(found) if file.path != source.path for stop in stops_in(file, vllm))
    more = tuple(stop for stop in stops if (stop.where, stop.what) not in told)
    parts = tuple(dict.fromkeys((*config.parts, *(file.path for file in found if file.path != source.path))))
    return replace(config, stops=(*config.stops, *more), parts=parts)


def _file_of(source: Source, named: object) -> Source | None:
    """The file of `package.module.Class`, in a package around the config or beside it; vLLM's own are none."""
    module = named.rpartition(".")[0] if isinstance(named, str) else ""
    package = module.partition(".")[0]
    if not package or package == "vllm":
        return None
    path = f"{module.replace('.', '/')}.py"
    checkout = checkout_of(source, package, path)
    return checkout.file(path) if checkout is not None else source.neighbour(path)
