"""The block size of the key-value cache: what the prefix cache shares, and what an attention kernel reads at once."""

from packaging.version import Version

from rlaudit.unknown import Unknown
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved

_CPU = "vllm/platforms/cpu.py"
_CUDA = "vllm/platforms/cuda.py"
_SIXTEEN = ("FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION")
_WORD = ("block_size", "user_specified_block_size")
# Tried: V0 takes only 16 (0.8.5, without Intel's extension for PyTorch), the attention of later CPU builds only
# multiples of 32 (0.32.0), and 0.18.1 takes both.
_LAST_CPU_WITH_SMALL_BLOCKS = Version("0.18.1")
# Intel's extension 2.8.0, which this release requires, decodes many requests only while each fits one block
# (examples/defects/ipex-2.8-decode).
_ONE_BLOCK_A_REQUEST = Version("0.11.0")


def smallest_cpu_block(version: Version) -> int:
    """Return the smallest block that a release's CPU build takes, in tokens: shorter prompts are never cached."""
    if version == _ONE_BLOCK_A_REQUEST:
        return 128
    return 16 if version <= _LAST_CPU_WITH_SMALL_BLOCKS else 32


def apply(view: Resolution) -> Resolved | None:
    """Return 16 on a GPU, 128 on a CPU from 0.11.1."""
    if view.given("block_size") is not None:
        return None
    if view.machine.platform == "cpu":
        if view.since("0.11.1"):
            return Resolved(128, "default on a CPU")
        return Resolved(Unknown("the size is 128 with Intel's extension for PyTorch, else 16"), "default on a CPU")
    if view.since("0.18.0") and view.value("attention_backend") not in _SIXTEEN:
        return Resolved(Unknown("the attention backend chooses its size"), "by attention backend")
    return Resolved(16, "default on a GPU; models with latent attention (MLA) take 64 or 128")


RESOLUTION = ResolutionRule(
    "block_size",
    (
        Function(_CPU, "CpuPlatform.check_and_update_config", _WORD),
        Function(_CUDA, "CudaPlatformBase.check_and_update_config", _WORD),
        Function("vllm/platforms/interface.py", "Platform.update_block_size_for_backend"),
        Function("vllm/config/cache.py", "CacheConfig._apply_block_size_default"),
    ),
    apply,
)
