"""Bytes to text and back, byte for byte: byte order marks, UTF-16 and line ends stay what they were."""

import codecs
from dataclasses import dataclass

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


class NotText(ValueError):
    """Bytes that are no text of a kind that configs are written in."""


@dataclass(frozen=True)
class Encoding:
    """How a file spells its characters. mark: the byte order mark that precedes them, often empty."""

    name: str = "utf-8"
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """The bytes that decode to `text`."""
        return self.mark + text.encode(self.name)


def decode(data: bytes) -> tuple[str, Encoding]:
    """The text without its mark, and how to write it back. Line ends are not translated. Raises NotText."""
    encoding = next((Encoding(name, mark) for mark, name in _MARKS if data.startswith(mark)), Encoding())
    if b"\0" in data and not encoding.name.startswith("utf-16"):
        raise NotText("binary")
    try:
        return data[len(encoding.mark) :].decode(encoding.name), encoding
    except UnicodeDecodeError as error:
        raise NotText(f"not {encoding.name.upper()}: {error.reason} at byte {error.start}") from None
