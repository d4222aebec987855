"""The smallest block of the key-value cache that a release's CPU build takes: prompts shorter than it are never cached.

V0 takes only 16 (0.8.5, without Intel's extension for PyTorch), the attention of later CPU builds only multiples of 32
(0.32.0), and 0.18.1 takes both. Tried with those three releases.
"""

from packaging.version import Version

LAST_WITH_SMALL_BLOCKS = Version("0.18.1")
SMALL, LARGE = 16, 32


def smallest_cpu_block(version: Version) -> int:
    """Return the smallest block, in tokens."""
    return SMALL if version <= LAST_WITH_SMALL_BLOCKS else LARGE
