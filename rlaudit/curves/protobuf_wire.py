"""The wire format of protocol buffers, as far as two logging formats need it: fields, without a schema.

Source: protobuf.dev, "Encoding". Nothing is generated and no protobuf package is needed.
"""

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10


def fields(message: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield (field number, wire type, value): an int for a varint, bytes for others. Raises ValueError if malformed."""
    place = 0
    while place < len(message):
        tag, place = varint(message, place)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, place = varint(message, place)
            yield number, kind, value
            continue
        if kind == BYTES:
            length, place = varint(message, place)
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if place + length > len(message):
            raise ValueError("a field that ends after its message")
        yield number, kind, message[place : place + length]
        place += length


def varint(message: bytes, place: int) -> tuple[int, int]:
    """Return the unsigned integer at `place`, and the place behind it. Raises ValueError if it does not end."""
    value = 0
    for index in range(LONGEST_VARINT):
        if place + index >= len(message):
            break
        byte = message[place + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, place + index + 1
    raise ValueError("an integer that does not end")


def signed(value: int) -> int:
    """Return an int64 field, whose negative values are written as 64-bit complements."""
    return value - (1 << 64) if value >= 1 << 63 else value
