"""A worker with the extension that the engine's arguments name mixed into its class, as vLLM does it."""

from importlib import import_module
from types import SimpleNamespace

from vllm._config import Dtype
from vllm._release import IS_V1

if IS_V1:
    from vllm.v1.worker.cpu_model_runner import CPUModelRunner
else:
    from vllm.worker.cpu_model_runner import CPUModelRunner


class Worker:
    """Holds the model runner; what it is asked comes from an extension."""

    def __init__(self, vllm_config, model):
        self.vllm_config = vllm_config
        self.model_runner = CPUModelRunner(model)


def worker_of(args, vllm_config):
    """The worker of one engine."""
    layer = SimpleNamespace(
        impl=SimpleNamespace(),
        kv_cache_dtype="auto",
        kv_cache=[SimpleNamespace(dtype=Dtype(args.dtype), numel=lambda: 1)],
        backend=SimpleNamespace(name="CPU_ATTN" if IS_V1 else "TORCH_SDPA"),
    )
    weight = SimpleNamespace(dtype=Dtype(args.dtype), numel=lambda: 1)
    model = SimpleNamespace(modules=lambda: [layer], parameters=lambda: [weight])
    kind = Worker
    if args.worker_extension_cls:
        module, name = args.worker_extension_cls.rsplit(".", 1)
        kind = type("Worker", (Worker, getattr(import_module(module), name)), {})
    return kind(vllm_config, model)
