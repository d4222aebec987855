"""What is read is written back byte for byte."""

import codecs

import pytest

from rlaudit.inspection.files import NotText, decode


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"a: 1\n",
        b"a: 1\r\nb: 2\r\n",
        b"a: 1\rb\n\r",
        "ü: 1\n".encode(),
        codecs.BOM_UTF8 + "ü: 1\r\n".encode(),
        codecs.BOM_UTF16_LE + "ü: 1\r\n".encode("utf-16-le"),
        codecs.BOM_UTF16_BE + "ü: 1\n".encode("utf-16-be"),
    ],
)
def test_text_goes_back_to_the_bytes_it_came_from(data: bytes) -> None:
    text, encoding = decode(data)
    assert not text.startswith("\ufeff")
    assert encoding.encode(text) == data


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x7fELF\0\0", "binary"),
        (b"caf\xe9: 1", "not UTF-8: invalid continuation byte at byte 3"),
        (codecs.BOM_UTF16_LE + b"a", "not UTF-16-LE"),
    ],
)
def test_what_is_no_text_says_why(data: bytes, says: str) -> None:
    with pytest.raises(NotText, match=says):
        decode(data)
