"""The smallest block of the key-value cache that a release's CPU build takes: prompts shorter than it are never cached.

V0 takes 16 only (0.8.5, without Intel's extension for PyTorch), the attention of later CPU builds multiples of 32 only
(0.32.0), 0.18.1 both. Tried with those three releases.
"""

from packaging.version import Version

LAST_WITH_SMALL_BLOCKS = Version("0.18.1")
SMALL, LARGE = 16, 32


def smallest_cpu_block(version: Version) -> int:
    """Tokens of a block."""
    return SMALL if version <= LAST_WITH_SMALL_BLOCKS else LARGE
