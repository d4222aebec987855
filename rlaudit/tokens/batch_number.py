"""A number for a batch that a log identifies by a text: the same in every part of every file."""

from zlib import crc32


def batch_number(name: str) -> int:
    """Equal for equal names; different ones share a number once in four thousand million."""
    return crc32(name.encode())
