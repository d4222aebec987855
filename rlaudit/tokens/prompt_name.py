"""A name for a prompt that an export identifies by its token ids only."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np


def prompt_name(token_ids: "Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]]") -> str:
    """Equal for equal prompts; short enough for a message."""
    return "#" + blake2b(np.asarray(token_ids, dtype=np.int64).tobytes(), digest_size=6).hexdigest()
