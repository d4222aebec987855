"""The numbers of a recording, decoded: base64 of little-endian values. Standard library only."""

import base64
import binascii
import sys
from array import array
from typing import Any


class NotNumbers(ValueError):
    """Text that is no base64 of numbers of that size."""


def whole_numbers(text: str) -> "array[int]":
    """Return token ids or counts, of 32 bits. Raises NotNumbers."""
    return _decoded(text, "i")


def float32s(text: str) -> "array[float]":
    """Return logprobs in nats, or elements of weights, of 32 bits; NaN for none. Raises NotNumbers."""
    return _decoded(text, "f")


def stamps(text: str) -> "array[float]":
    """Return clocks in seconds, of 64 bits. Raises NotNumbers."""
    return _decoded(text, "d")


def encoded(numbers: "array[Any]") -> str:
    """Return numbers as a recording has them."""
    if sys.byteorder == "big":
        numbers = array(numbers.typecode, numbers)
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode()


def _decoded(text: str, code: str) -> "array[Any]":
    numbers = array(code)
    try:
        numbers.frombytes(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        raise NotNumbers(f"no base64 of numbers of {numbers.itemsize} bytes ({error})") from error
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
