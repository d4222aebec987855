"""The numbers of a recording: base64 of little-endian values. Standard library only.

Not covered: big-endian machines.
"""

import base64
from array import array
from typing import Any


def whole_numbers(text: Any) -> "array[int]":
    """Return token ids or counts, of 32 bits. Raises ValueError for anything else than base64 of these."""
    return _decoded(text, "i")


def float32s(text: Any) -> "array[float]":
    """Return logprobs in nats, or elements of weights, of 32 bits; NaN for none. Raises ValueError."""
    return _decoded(text, "f")


def stamps(text: Any) -> "array[float]":
    """Return clocks in seconds, of 64 bits. Raises ValueError."""
    return _decoded(text, "d")


def encoded(numbers: "array[Any]") -> str:
    """Return numbers as a recording has them."""
    return base64.b64encode(numbers.tobytes()).decode()


def _decoded(text: Any, code: str) -> "array[Any]":
    if not isinstance(text, str):
        raise ValueError(f"{type(text).__name__}, not base64")
    numbers = array(code)
    numbers.frombytes(base64.b64decode(text, validate=True))
    return numbers
