"""Reports what a vLLM worker has loaded and what it ran, from inside the worker.

Loaded into every worker by `worker_extension_cls`; every method answers in JSON text, which every release can send
between its processes. The front end's configuration does not have this: its attention backend stays "auto", CUDA-graph
modes and block sizes are resolved in the worker, and a kernel that is allowed may not be used.

Features are independent of each other. If a release does not have one its value is None, with the reason in `because`;
an error is recorded in `failed` by the feature's name, and never stops an engine. Written against the sources of 0.8.5
(V0 and V1), 0.18.1, 0.26.0 and 0.32.0.

Python 3.9 syntax; imports only what a vLLM environment holds.
"""

import json
import sys

from rlaudit_batch_counts import watch

# In the order in which CudaCommunicator.all_reduce tries them (vllm/distributed/device_communicators, 0.26.0:251).
ALL_REDUCE = (
    ("QUICK_REDUCE", "qr_comm"),
    ("FLASHINFER_PCIE_IPC", "fi_pcie_ipc_ar_comm"),
    ("FLASHINFER", "fi_ar_comm"),
    ("AITER_CUSTOM", "aiter_ar_comm"),
    ("CUSTOM", "ca_comm"),
    ("SYMM_MEM", "symm_mem_comm"),
    ("PYNCCL", "pynccl_comm"),
)
# The package of the kernels, by a part of the backend's name.
KERNEL_PACKAGES = (("FLASHINFER", "flashinfer-python"), ("XFORMERS", "xformers"), ("TRITON", "triton"))


class NotHere(Exception):
    """This engine does not have the feature; the message is the reason."""


class LoadedEngine:
    """Methods that `collective_rpc` reaches in each worker."""

    def rlaudit_watch(self):
        """Count from now on what each batch ran."""
        self._rlaudit_counts = watch(self.model_runner)

    def rlaudit_loaded(self):
        """Return {"features", "because", "failed", "ran"}; see `look`. ran: the counts since rlaudit_watch, or None."""
        counts = getattr(self, "_rlaudit_counts", None)
        answer = look(self)
        if counts is not None:
            answer["failed"].update(counts["failed"])
            features = answer["features"]
            if features["sampler"] is not None and counts["batches"]:
                features["sampler"], answer["because"]["sampler"] = drawn_by(features["sampler"], counts)
            counts = {name: count for name, count in counts.items() if name != "failed"}
        return json.dumps({**answer, "ran": counts})


def look(worker):
    """Return {"features": {name: value or None}, "because": {name: reason}, "failed": {name: error}}."""
    features, because, failed = {}, {}, {}
    for name, find in FEATURES.items():
        features[name] = None
        try:
            features[name] = find(worker)
        except NotHere as absent:
            because[name] = str(absent)
        except Exception as error:
            failed[name] = "%s: %s" % (type(error).__name__, error)
    return {"features": features, "because": because, "failed": failed}


def model_runner(worker):
    """Return the generation of the runner, by the module of its class or of a parent, and the name of its class."""
    kind = type(worker.model_runner)
    modules = [parent.__module__ for parent in kind.__mro__]
    if any(module.startswith("vllm.v1.worker.gpu.") for module in modules):
        return "V2 " + kind.__name__
    return ("V1 " if any(module.startswith("vllm.v1.") for module in modules) else "V0 ") + kind.__name__


def attention_backend(worker):
    """Return the names of the backends that the model's layers were built with."""
    return " + ".join(sorted({backend_name(layer) for layer in attention_layers(worker)}))


def attention_version(worker):
    """Return FA2, FA3 or FA4 from the layers, else the version of the package with the kernels."""
    layers = attention_layers(worker)
    numbers = {getattr(layer.impl, "vllm_flash_attn_version", None) for layer in layers if hasattr(layer, "impl")}
    versions = sorted("FA%s" % number for number in numbers if number is not None)
    if versions:
        return " + ".join(versions)
    names = {backend_name(layer) for layer in layers}
    for part, package in KERNEL_PACKAGES:
        if any(part in name for name in names):
            return package_version(package)
    raise NotHere("%s has no version" % " + ".join(sorted(names)))


def package_version(package):
    """Return the name and version of an installed package."""
    from importlib import metadata

    try:
        return "%s %s" % (package, metadata.version(package))
    except metadata.PackageNotFoundError:
        raise NotHere("the package %s is not installed under this name" % package)


def attention_layers(worker):
    """Return the attention layers of the model."""
    layers = [layer for layer in model_of(worker).modules() if hasattr(layer, "get_attn_backend") or attends(layer)]
    if not layers:
        raise NotHere("the model has no attention layer")
    return layers


def attends(layer):
    """Return whether a layer without get_attn_backend (before 0.11) has an attention implementation."""
    return hasattr(layer, "impl") and hasattr(layer, "kv_cache_dtype")


def backend_name(layer):
    """Return FLASH_ATTN, TRITON_ATTN and so on; before 0.11 the enumeration `layer.backend` has it."""
    if hasattr(layer, "get_attn_backend"):
        return layer.get_attn_backend().get_name()
    return getattr(getattr(layer, "backend", None), "name", None) or type(layer.impl).__name__


def model_of(worker):
    """Return the model without the wrapper that captures graphs."""
    runner = worker.model_runner
    return runner.get_model() if hasattr(runner, "get_model") else runner.model


def kv_cache_dtype(worker):
    """Return the dtypes of the layers' caches: the configured one (fp8), or that of the tensor for `auto`."""
    dtypes = set()
    for layer in attention_layers(worker):
        configured, tensor = getattr(layer, "kv_cache_dtype", "auto"), first_tensor(getattr(layer, "kv_cache", None))
        dtypes.add(configured if configured != "auto" or tensor is None else plain(tensor.dtype))
    return " + ".join(sorted(dtypes))


def first_tensor(cache):
    """Return the first tensor of a cache: releases keep one, or one for each virtual engine."""
    while isinstance(cache, (list, tuple)) and cache:
        cache = cache[0]
    return cache if hasattr(cache, "dtype") and cache.numel() else None


def kv_block_size(worker):
    """Return the tokens of a block, or of each cache group's blocks."""
    groups = getattr(getattr(worker.model_runner, "kv_cache_config", None), "kv_cache_groups", None)
    if groups:
        return " + ".join(str(size) for size in sorted({group.kv_cache_spec.block_size for group in groups}))
    return str(worker.vllm_config.cache_config.block_size)


def cudagraph_mode(worker):
    """Return the mode that the worker resolved for its attention backends."""
    config, runner = worker.vllm_config.compilation_config, worker.model_runner
    if hasattr(config, "cudagraph_mode"):
        return plain(config.cudagraph_mode)
    if hasattr(runner, "use_cuda_graph"):  # V1 of 0.8.5 captures the pieces between attention layers
        return "PIECEWISE" if runner.use_cuda_graph else "NONE"
    # V0 captures whole decode steps.
    return "FULL_DECODE_ONLY" if any(getattr(runner, "graph_runners", None) or ()) else "NONE"


def compilation(worker):
    """Return the mode (in older releases, the level) and backend of torch.compile."""
    config = worker.vllm_config.compilation_config
    mode = config.mode if hasattr(config, "mode") else level_name(config)
    if not getattr(mode, "value", mode) or mode == "NO_COMPILATION":
        return "none"
    inductor = "inductor" if getattr(config, "use_inductor", True) else "eager"
    return "%s, %s" % (plain(mode), getattr(config, "backend", None) or inductor)


def level_name(config):
    """Return the name of an integer level."""
    from vllm import config as module

    names = {value: name for name, value in vars(module.CompilationLevel).items() if isinstance(value, int)}
    return names.get(config.level, str(config.level))


def moe_backend(worker):
    """Return the kernels that the expert layers chose."""
    methods = [getattr(layer, "quant_method", None) for layer in model_of(worker).modules()]
    methods = [method for method in methods if computes_experts(method)]
    if not methods:
        return "none (dense)"
    return " + ".join(sorted({experts_name(method) for method in methods}))


def computes_experts(method):
    """Return whether a method is of expert layers, by the name of a base class that has moved between modules."""
    return any(parent.__name__ == "FusedMoEMethodBase" for parent in type(method).__mro__)


def experts_name(method):
    """Return the chosen member of the release's enumeration, and the class of the kernels if there is one."""
    method = getattr(method, "old_quant_method", None) or method
    chosen = [value for name, value in sorted(vars(method).items()) if name.endswith("_backend") and is_member(value)]
    experts = getattr(method, "experts_cls", None)
    names = [plain(member) for member in chosen] or [type(method).__name__]
    return ", ".join(names + ([experts.__name__] if experts is not None else []))


def is_member(value):
    """Return whether a value is a member of an enumeration."""
    import enum

    return isinstance(value, enum.Enum)


def sampler(worker):
    """Return whether FlashInfer's sampler may be used; the counts tell whether it was."""
    of_runner = getattr(worker.model_runner, "sampler", None)
    if of_runner is None:
        raise NotHere("this worker does not sample")
    if hasattr(of_runner, "use_flashinfer"):
        return "FlashInfer allowed" if of_runner.use_flashinfer else "native"
    inner = getattr(of_runner, "topk_topp_sampler", None)
    if inner is not None:
        return "FlashInfer allowed" if inner.forward.__name__ == "forward_cuda" else "native"
    of_v0 = getattr(sys.modules.get(type(of_runner).__module__), "flashinfer_top_k_top_p_sampling", None)
    return "FlashInfer allowed" if of_v0 is not None else "native"


def drawn_by(allowed, counts):
    """Return which sampler drew the tokens, and why."""
    calls, batches = counts["flashinfer_batches"], counts["batches"]
    if calls:
        used = "FlashInfer" if calls >= batches else "FlashInfer and native"
        return used, "FlashInfer drew %d of %d batches" % (calls, batches)
    if allowed == "native":
        return "native", "FlashInfer is not switched on here"
    return (
        "native",
        "FlashInfer is allowed, but draws only where no request has a seed, top-k or top-p is set and the returned "
        "logprobs are raw",
    )


def all_reduce(worker):
    """Return the possible all-reduces of tensor-parallel workers, in the order tried; the tensor decides on one."""
    workers = worker.vllm_config.parallel_config.tensor_parallel_size
    if workers == 1:
        return "none (one worker)"
    from vllm.distributed.parallel_state import get_tp_group

    communicator = get_tp_group().device_communicator
    if communicator is None:
        raise NotHere("the tensor-parallel group has no device communicator")
    ways = [
        name
        for name, attribute in ALL_REDUCE
        if getattr(communicator, attribute, None) is not None
        and not getattr(getattr(communicator, attribute), "disabled", False)
    ]
    fused = getattr(getattr(worker.vllm_config.compilation_config, "pass_config", None), "fuse_allreduce_rms", None)
    return ", ".join(ways or [type(communicator).__name__]) + (" (fused with RMSNorm)" if fused else "")


def quantization(worker):
    """Return the method, or none."""
    return plain(worker.vllm_config.model_config.quantization) or "none"


def weight_dtype(worker):
    """Return the dtypes of the parameters, the most frequent first."""
    counts = {}
    for parameter in model_of(worker).parameters():
        counts[plain(parameter.dtype)] = counts.get(plain(parameter.dtype), 0) + parameter.numel()
    if not counts:
        raise NotHere("the model has no parameters")
    return " + ".join(sorted(counts, key=lambda dtype: (-counts[dtype], dtype)))


def gpu(worker):
    """Return the name of the GPU."""
    return cuda().get_device_name(worker.device)


def compute_capability(worker):
    """Return the compute capability, as 9.0."""
    return "%d.%d" % cuda().get_device_capability(worker.device)


def driver(worker):
    """Return the version of the driver, from NVML as vLLM ships it, else from the kernel module."""
    cuda()
    try:
        from vllm.third_party import pynvml

        pynvml.nvmlInit()
        try:
            version = pynvml.nvmlSystemGetDriverVersion()
        finally:
            pynvml.nvmlShutdown()
        return version.decode() if isinstance(version, bytes) else str(version)
    except Exception:
        with open("/sys/module/nvidia/version") as stated:
            return stated.read().strip()


def torch_cuda(worker):
    """Return the CUDA that torch was built for."""
    import torch

    if torch.version.cuda is None:
        raise NotHere("this torch was built without CUDA")
    return torch.version.cuda


def cuda():
    """Return torch.cuda if there is a device."""
    import torch

    if not torch.cuda.is_available():
        raise NotHere("no CUDA device")
    return torch.cuda


def plain(value):
    """Return the name of a member of an enumeration, a dtype without its module, None unchanged, the rest as text."""
    return value.name if hasattr(value, "name") else value if value is None else str(value).replace("torch.", "")


FEATURES = {
    "model_runner": model_runner,
    "attention_backend": attention_backend,
    "attention_version": attention_version,
    "cudagraph_mode": cudagraph_mode,
    "compilation": compilation,
    "sampler": sampler,
    "moe_backend": moe_backend,
    "all_reduce": all_reduce,
    "quantization": quantization,
    "weight_dtype": weight_dtype,
    "kv_cache_dtype": kv_cache_dtype,
    "kv_block_size": kv_block_size,
    "gpu": gpu,
    "compute_capability": compute_capability,
    "driver": driver,
    "torch_cuda": torch_cuda,
}
