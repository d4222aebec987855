"""Which of the shell's environment variables reach an engine process, and which of them are recorded.

An arm is controlled: the engine's settings come from the recipe only. Variables without which a node does not work are
passed. One that can change a number is passed and part of a cell's identity, so that a run that is resumed with another
value starts afresh. One that can only break a run, or make it slower, is passed and recorded.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import Literal

from rlaudit.engines.inside.engine import ENGINE
from rlaudit.secrets import MASK, mask_text, names_a_secret

Device = Literal["cpu", "cuda"]


class Fate(Enum):
    """What becomes of a variable of the shell."""

    STRIPPED = "not passed on"
    WITHHELD = "a secret that no engine needs: not passed on, its name recorded"
    DECIDES = "passed, recorded, and part of a cell's identity on any device"
    DECIDES_ON_CUDA = "passed and recorded; part of a cell's identity on CUDA"
    DECIDES_ON_CPU = "passed and recorded; part of a cell's identity on a CPU"
    RECORDED = "passed and recorded"
    PASSED = "passed"


@dataclass(frozen=True)
class Inheritance:
    """What becomes of the variables whose names match one of `patterns`, which are globs, and why."""

    patterns: tuple[str, ...]
    fate: Fate
    reason: str


# The first match decides. A variable without a match is passed, unless its name is that of a secret.
INHERITANCE = (
    Inheritance(
        (*ENGINE.settings, "TORCHINDUCTOR_*", "TORCH_LOGS*"),
        Fate.STRIPPED,
        "settings of the engine and its compiler: the recipe declares them",
    ),
    Inheritance(
        ("PYTHON*", "LD_PRELOAD", "VIRTUAL_ENV", "CONDA_PREFIX", "__PYVENV_LAUNCHER__"),
        Fate.STRIPPED,
        "they point an interpreter at another one's modules and libraries",
    ),
    Inheritance(
        ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"),
        Fate.STRIPPED,
        "an engine gets the GPUs that were found, in the form that its release takes",
    ),
    Inheritance(
        ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"),
        Fate.DECIDES_ON_CUDA,
        "float32 products become TF32, or TF32 ones float32; NVIDIA's own images set the second one",
    ),
    Inheritance(
        ("CUBLAS*", "CUDNN_*", "CUTLASS_*", "CUTE_DSL_*"),
        Fate.DECIDES_ON_CUDA,
        "workspaces and choices of algorithms: another order of summation",
    ),
    Inheritance(
        ("TRITON_CACHE_*", "TRITON_HOME", "TRITON_*_DIR", "TRITON_PRINT_*", "TRITON_KERNEL_DUMP"),
        Fate.RECORDED,
        "where compiled kernels lie",
    ),
    Inheritance(
        ("TRITON_*", "DISABLE_MMA_*", "PTXAS_OPTIONS", "DISABLE_PTXAS_OPT"),
        Fate.DECIDES_ON_CUDA,
        "how kernels are compiled: the precision of tl.dot, fused multiply-adds, the assembler",
    ),
    Inheritance(
        ("NCCL_SOCKET_*", "NCCL_IB_*", "NCCL_DEBUG*", "NCCL_COMM_ID", "NCCL_HOSTID", "NCCL_CONF_FILE", "NCCL_NET*"),
        Fate.RECORDED,
        "the way from node to node, without which engines on several GPUs wait for ever; it differs between nodes",
    ),
    Inheritance(
        ("NCCL_*",),
        Fate.DECIDES_ON_CUDA,
        "algorithm, protocol, channels and links of an all-reduce decide in which order it adds",
    ),
    Inheritance(
        ("FLASHINFER_*DIR", "FLASHINFER_*BASE", "FLASHINFER_LOG*", "FLASHINFER_*_LOG*", "FLASHINFER_CUBINS_*"),
        Fate.RECORDED,
        "where kernels lie and what is said of them",
    ),
    Inheritance(
        ("FLASHINFER_*", "FLASH_ATTENTION_*", "XFORMERS_*", "DG_*", "NVTE_*"),
        Fate.DECIDES_ON_CUDA,
        "which attention and matrix kernels are built or chosen",
    ),
    Inheritance(
        ("CUDA_CACHE_*", "CUDA_MODULE_LOADING", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MPS_*"),
        Fate.RECORDED,
        "when work is loaded and started, not what is computed",
    ),
    Inheritance(
        ("CUDA_*", "NVCC_*"),
        Fate.DECIDES_ON_CUDA,
        "which compiler builds kernels at run time, and for which GPU",
    ),
    Inheritance(
        ("TORCH_HOME", "TORCH_EXTENSIONS_DIR", "TORCH_NCCL_*", "TORCH_SHOW_*", "TORCH_CPP_*", "TORCHELASTIC_*"),
        Fate.RECORDED,
        "places, time limits and messages",
    ),
    Inheritance(
        ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"),
        Fate.RECORDED,
        "how memory is kept, not what is computed",
    ),
    Inheritance(
        ("TORCH_*", "PYTORCH_*", "TORCHDYNAMO_*", "ATEN_*", "DISABLE_ADDMM_*"),
        Fate.DECIDES,
        "torch's choice of libraries, kernels and instruction sets",
    ),
    Inheritance(
        ("OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*", "GOTO_*", "BLIS_*", "VECLIB_*", "DNNL_*", "ONEDNN_*"),
        Fate.DECIDES_ON_CPU,
        "threads split a sum, and instruction sets choose a kernel; on a GPU the processor computes no logprob",
    ),
    Inheritance(
        ("LD_LIBRARY_PATH",),
        Fate.DECIDES,
        "searched before the libraries that a wheel brings: it can put another cuBLAS, cuDNN, NCCL or libcuda there",
    ),
    Inheritance(("GLIBC_TUNABLES",), Fate.DECIDES_ON_CPU, "it hides instruction sets from the mathematics library"),
    Inheritance(
        ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "MODELSCOPE_API_TOKEN"),
        Fate.PASSED,
        "an engine fetches a gated model with them",
    ),
    Inheritance(
        ("HF_HOME", "HF_HUB_*", "TRANSFORMERS_*", "SAFETENSORS_*", "TMPDIR", "XDG_CACHE_HOME"),
        Fate.RECORDED,
        "where models and caches lie; a cell's identity has the weights themselves",
    ),
)  # fmt: skip

# For the worker, which strips what a container or a launcher adds.
STRIPPED = tuple(pattern for rule in INHERITANCE if rule.fate is Fate.STRIPPED for pattern in rule.patterns)


def fate_of(name: str) -> Fate:
    """Return what becomes of the variable of this name."""
    for rule in INHERITANCE:
        if any(fnmatchcase(name, pattern) for pattern in rule.patterns):
            return rule.fate
    return Fate.WITHHELD if names_a_secret(name) else Fate.PASSED


def inherited(environ: Mapping[str, str] = os.environ, with_secrets: bool = False) -> dict[str, str]:
    """Return the shell's variables that reach an engine process. with_secrets: also secrets that no engine needs."""
    left_out = {Fate.STRIPPED} if with_secrets else {Fate.STRIPPED, Fate.WITHHELD}
    return {name: value for name, value in environ.items() if fate_of(name) not in left_out}


def withheld(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the names of the shell's secrets that no engine gets, unless a recipe declares them."""
    return sorted(name for name in environ if fate_of(name) is Fate.WITHHELD)


def secrets_passed(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the names of the shell's secrets that an engine gets: by their names, or by what their values hold."""
    passed = {name for name in environ if fate_of(name) not in {Fate.STRIPPED, Fate.WITHHELD}}
    return sorted(passed - set(_recordable(environ)))


def handed_on(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables for a cell in a container, which inherits none: the recorded ones without paths."""
    return {name: value for name, value in recorded(environ).items() if "/" not in value}


def deciding(device: Device, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the shell's variables that can change the results of an engine on this device."""
    fates = {Fate.DECIDES, Fate.DECIDES_ON_CUDA if device == "cuda" else Fate.DECIDES_ON_CPU}
    return {name: environ[name] for name in _recordable(environ) if fate_of(name) in fates}


def recorded(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the shell's variables that a run records, never one that could hold a secret."""
    left_out = {Fate.STRIPPED, Fate.WITHHELD, Fate.PASSED}
    return {name: environ[name] for name in _recordable(environ) if fate_of(name) not in left_out}


def _recordable(environ: Mapping[str, str]) -> list[str]:
    return sorted(name for name in environ if not names_a_secret(name) and MASK not in mask_text(environ[name]))
