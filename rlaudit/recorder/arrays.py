"""The numbers of a recording, decoded: base64 of little-endian values."""

import base64
import binascii

import numpy as np
from numpy.typing import NDArray


class NotNumbers(ValueError):
    """Text that is no base64 of whole numbers of that size."""


def token_ids(text: str) -> NDArray[np.int64]:
    """Return token ids or counts. Raises NotNumbers."""
    return _decoded(text, "<i4").astype(np.int64)


def logprobs(text: str) -> NDArray[np.float64]:
    """Return logprobs in nats, NaN where there is none. Raises NotNumbers."""
    return _decoded(text, "<f4").astype(np.float64)


def stamps(text: str) -> NDArray[np.float64]:
    """Return clocks in seconds. Raises NotNumbers."""
    return _decoded(text, "<f8").astype(np.float64)


def _decoded(text: str, dtype: str) -> NDArray[np.generic]:
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), dtype=dtype)
    except (binascii.Error, ValueError) as error:
        raise NotNumbers(f"no base64 of {dtype}: {error}") from error
