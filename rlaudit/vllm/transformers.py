"""The transformers that a release of vLLM runs with: Requires-Dist in the METADATA of its wheel."""

from collections.abc import Mapping
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.version import Version

# From the first release with it. Read up to LAST_READ from the wheels on PyPI, 2026-11-30.
REQUIRED: Mapping[Version, str] = {
    Version("0.8.5"): ">=4.51.1",
    Version("0.10.0"): ">=4.53.2",
    Version("0.10.1"): ">=4.55.0",
    Version("0.10.2"): ">=4.55.2",
    Version("0.11.1"): ">=4.56.0,<5",
    Version("0.19.1"): ">=4.56.0,!=5.0.*,!=5.1.*,!=5.2.*,!=5.3.*,!=5.4.*,!=5.5.0",
    Version("0.24.0"): ">=5.5.3",
    Version("0.29.0"): ">=5.10.4",
    Version("0.31.0"): ">=5.10.4,<5.18.0",
    Version("0.32.0"): ">=5.16.1,<5.20.0",
    Version("0.33.0"): ">=5.16.1,<5.21.0",
}
LAST_READ = Version("0.33.0")
# Up to 0.11.0 nothing keeps pip from transformers 5, which came later and lacks what their tokenizers call:
# all_special_tokens_extended (vllm/transformers_utils/tokenizer.py, 0.8.5:84 and 0.10.2:99).
RUNS_WITH_5 = Version("0.19.1")
_LAST_OF_4 = Version("4.57.6")


@dataclass(frozen=True)
class RequiredTransformers:
    """What one release of vLLM requires of transformers."""

    # As its wheel has it.
    written: str
    # The major releases that it runs with.
    majors: tuple[int, ...]

    def runs_with(self, transformers: Version) -> bool:
        """Return whether a release of transformers is among them."""
        return transformers.major in self.majors and SpecifierSet(self.written).contains(transformers, prereleases=True)


def required_transformers(vllm: Version) -> RequiredTransformers:
    """Return what a release of vLLM requires; one that is not in the table requires what the one before it did."""
    written = REQUIRED[max(since for since in REQUIRED if since <= vllm)]
    runs_with_4 = SpecifierSet(written).contains(_LAST_OF_4)
    return RequiredTransformers(written, (*((4,) if runs_with_4 else ()), *((5,) if vllm >= RUNS_WITH_5 else ())))
