"""The configuration objects that a loaded engine can be asked about."""

from types import SimpleNamespace

from vllm._release import IS_V1

# What a configuration object calls otherwise than the engine argument that it comes from.
RENAMED = {"cache_dtype": "kv_cache_dtype", "policy": "scheduling_policy"}


class Dtype:
    """Says its name as torch's dtypes do."""

    def __init__(self, name):
        self._name = name

    def __str__(self):
        return "torch." + self._name


class Section:
    """One object of the configuration. It has every engine argument of the release: which belong to which object is
    the real one's affair.
    """

    def __init__(self, args, **own):
        self._args = args
        vars(self).update(own)

    def __getattr__(self, name):
        return getattr(self._args, RENAMED.get(name, name))


def compilation():
    """V1 has a CUDA-graph mode and a mode of compilation, V0 a level."""
    if IS_V1:
        return SimpleNamespace(cudagraph_mode=SimpleNamespace(name="NONE"), mode=SimpleNamespace(name="NONE", value=0))
    return SimpleNamespace(level=0)


def config_of(args):
    """`vllm_config` as far as the audit reads it."""
    return SimpleNamespace(
        model_config=Section(args, dtype=Dtype(args.dtype), get_diff_sampling_param=dict),
        cache_config=Section(args),
        scheduler_config=Section(args),
        parallel_config=Section(args),
        compilation_config=compilation(),
        device_config=SimpleNamespace(device_type="cpu"),
    )
