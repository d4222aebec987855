"""The kinds of file that pin packages, and the pins of one file."""

from functools import lru_cache

from rlaudit.discover import discover
from rlaudit.pins import files
from rlaudit.pins.package import VLLM, Package
from rlaudit.pins.pin import Pin, PinFile

LARGEST_BYTES = 20_000_000  # lock files of large projects have ten megabytes


@lru_cache(maxsize=1)
def pin_files() -> tuple[PinFile, ...]:
    """What was resolved first."""
    return tuple(sorted(discover(files, "PIN_FILE", PinFile).values(), key=lambda one: one.rank))


def kind_of(path: str) -> PinFile | None:
    """The kind of a path, None for a file that pins nothing."""
    return next((one for one in pin_files() if one.matches(path)), None)


def pins_in(kind: PinFile, text: str, package: Package = VLLM) -> tuple[Pin, ...]:
    """The pins of one file; most files have not even the word."""
    return tuple(kind.read(text, package)) if package.in_text(text) else ()
