"""Modules of vLLM that programs import and a release does not have any more.

Only the packages right below `vllm`, and the one class that programs with rollouts import by name: a program that asks
for anything else says so itself when it starts.
Source: the modules of every catalogued release's wheel.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from packaging.version import Version


@dataclass(frozen=True)
class GoneImport:
    """What a program imports, until which release it could, and what takes its place, "" if nothing does."""

    name: str
    last: Version
    instead: str = ""


_LAST: Mapping[str, tuple[str, str]] = {
    "GuidedDecodingParams": ("0.11.2", "StructuredOutputsParams"),
    "vllm.adapter_commons": ("0.10.2", "vllm.lora"),
    "vllm.attention": ("0.15.1", "vllm.v1.attention"),
    "vllm.beam_search": ("0.21.0", ""),
    "vllm.core": ("0.10.2", "vllm.v1.core"),
    "vllm.executor": ("0.11.0", "vllm.v1.executor"),
    "vllm.jsontree": ("0.10.0", "vllm.utils.jsontree"),
    "vllm.prompt_adapter": ("0.9.2", ""),
    "vllm.spec_decode": ("0.9.2", "vllm.v1.spec_decode"),
    "vllm.test_utils": ("0.11.0", ""),
    "vllm.worker": ("0.11.0", "vllm.v1.worker"),
}


def gone_imports(before: Version, after: Version) -> tuple[GoneImport, ...]:
    """Those that the first release has and the second has not."""
    every = (GoneImport(name, Version(last), instead) for name, (last, instead) in _LAST.items())
    return tuple(one for one in every if before <= one.last < after)
