"""What NVML, torch.cuda and the compiled modules of a CUDA wheel answer where there is no GPU.

Called before vLLM is imported. Answered here, and nothing else:
- NVML: the functions of vLLM's own pynvml by which its platform finds, names and measures a device;
- torch.cuda: that there is one device, its capability, name and memory; and torch.version.cuda where the environment's
  torch was built without CUDA;
- compiled modules of the wheel (the shared objects that its RECORD lists): empty modules; and no to whether they have
  CUTLASS kernels for fp8, which modules of quantised layers ask while they are imported;
- of the packages that the wheel requires and the CPU environment lacks, those whose presence decides between attention
  backends: empty modules.

Python 3.9 syntax, standard library and torch only.
"""

import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import re
import sys
import types

# Distribution -> module. FlashInfer and xformers are attention backends where they can be imported.
DECIDING = {"flashinfer-python": "flashinfer", "flashinfer-cubin": "flashinfer_cubin", "xformers": "xformers"}


class _Patched(importlib.abc.MetaPathFinder):
    """Finds one module where it is, and lets `patch` change it once it has run."""

    def __init__(self, name, patch):
        self.name = name
        self.patch = patch

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        run = spec.loader.exec_module

        def run_and_patch(module):
            run(module)
            self.patch(module)

        spec.loader.exec_module = run_and_patch
        return spec


class _Empty(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of these names, and whatever is imported from within them, with nothing behind any name."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if any(name == known or name.startswith(known + ".") for known in self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _EmptyModule(spec.name)

    def exec_module(self, module):
        pass


class _EmptyModule(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def pretend(device, tree):
    """Let all that vLLM asks about the machine be answered as by `device`.

    device: capability [major, minor], name, memory_bytes, cuda. tree: the folder with the wheel's vllm/ and
    its dist-info.
    """
    answer_torch(device)
    answer_compiled()
    sys.meta_path[:0] = [
        _Patched("vllm.third_party.pynvml", lambda module: answer_nvml(module, device)),
        _Empty(compiled_modules(tree) | missing_requirements(tree)),
    ]


def start_vllm(device, tree):
    """Import the CUDA build on the device. Its model's class is registered: vLLM would look at it in a process of its
    own, where nothing answers."""
    pretend(device, tree)
    from vllm import ModelRegistry
    from vllm.model_executor.models.llama import LlamaForCausalLM
    from vllm.platforms import current_platform

    assert sys.modules["vllm"].__file__.startswith(tree), sys.modules["vllm"].__file__
    assert current_platform.is_cuda(), current_platform
    ModelRegistry.register_model("LlamaForCausalLM", LlamaForCausalLM)


def answer_nvml(pynvml, device):
    memory = types.SimpleNamespace(total=device["memory_bytes"], free=device["memory_bytes"], used=0)
    answers = {
        "nvmlInit": None,
        "nvmlShutdown": None,
        "nvmlDeviceGetCount": 1,
        "nvmlDeviceGetHandleByIndex": 0,
        "nvmlDeviceGetCudaComputeCapability": tuple(device["capability"]),
        "nvmlDeviceGetName": device["name"],
        "nvmlDeviceGetMemoryInfo": memory,
        "nvmlDeviceGetUUID": "GPU-00000000-0000-0000-0000-000000000000",
    }
    for name, answer in answers.items():
        setattr(pynvml, name, lambda *_, answer=answer, **__: answer)


def answer_torch(device):
    import torch
    import torch._dynamo.device_interface  # a torch without CUDA cannot import it once it says that it has CUDA

    properties = types.SimpleNamespace(
        name=device["name"],
        major=device["capability"][0],
        minor=device["capability"][1],
        total_memory=device["memory_bytes"],
    )
    answers = {
        "is_available": True,
        "_is_compiled": True,
        "device_count": 1,
        "_device_count_nvml": 1,
        "current_device": 0,
        "get_device_capability": tuple(device["capability"]),
        "get_device_name": device["name"],
        "get_device_properties": properties,
        "mem_get_info": (device["memory_bytes"], device["memory_bytes"]),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *_, answer=answer, **__: answer)
    if torch.version.cuda is None:
        torch.version.cuda = device["cuda"]


def answer_compiled():
    """What vLLM asks its compiled kernels when modules of quantised layers are imported."""
    import torch

    for question in ("cutlass_scaled_mm_supports_fp8", "cutlass_scaled_mm_supports_block_fp8"):
        setattr(torch.ops._C, question, lambda *_, **__: False)


def metadata_of(tree):
    return next(importlib.metadata.distributions(name="vllm", path=[tree]))


def compiled_modules(tree):
    """Module names of the wheel's shared objects: vllm/_C.abi3.so is vllm._C."""
    files = [line.split(",")[0] for line in metadata_of(tree).read_text("RECORD").splitlines()]
    return {re.sub(r"\.[^/]*$", "", file).replace("/", ".") for file in files if file.endswith(".so")}


def missing_requirements(tree):
    required = {re.match(r"[\w.-]+", line)[0].lower() for line in metadata_of(tree).requires}
    return {
        module for name, module in DECIDING.items() if name in required and importlib.util.find_spec(module) is None
    }
