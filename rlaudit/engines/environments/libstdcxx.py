"""Makes a library that requires a newer libstdc++ than the system's run anyway, if that is provably harmless.

The CPU wheels of vLLM 0.8 were compiled with GCC 13. Every object that includes <iostream> then refers to
`_ZSt21ios_base_library_initv@GLIBCXX_3.4.32`, an empty marker that is never called: it exists to make
programs fail early on an older libstdc++. Debian 12 and Ubuntu 22.04 have an older one; `import vllm._C`
fails there, vLLM only warns, and the engine dies later without its operators. Marking that one version
requirement weak (VER_FLG_WEAK) in `.gnu.version_r` lets the dynamic loader go on. A requirement that any
other symbol depends on is not changed.
Source: ELF gABI and the LSB "Symbol Versioning" chapter (Elf64_Verneed, Elf64_Vernaux); GCC 13 <iostream>.
"""

import contextlib
import os
import re
import shutil
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

NEVER_CALLED = frozenset({b"_ZSt21ios_base_library_initv"})
VER_FLG_WEAK = 0x2
_MISSING = re.compile(r"version [`'](\w+_[\d.]+)' not found \(required by (.+?)\)")


@dataclass(frozen=True)
class MissingVersion:
    """A symbol version that a library requires and the system's libstdc++ lacks, in the loader's spelling."""

    version: str
    library: Path


class NotHarmlessError(Exception):
    """The requirement cannot be weakened: symbols in use depend on it."""


def missing_version(message: str) -> MissingVersion | None:
    """Return the version that a loader's message reports as missing; None for any other message."""
    match = _MISSING.search(message)
    return MissingVersion(match[1], Path(match[2])) if match else None


def weaken(missing: MissingVersion) -> None:
    """Mark the version requirement weak, in a copy that replaces the file.

    The installed file is not changed in place: it may be a hard link into uv's cache, shared with other environments.
    Raises NotHarmlessError if another symbol than the known marker needs the version, ValueError if the file is not a
    64-bit little-endian ELF library or does not require the version.
    """
    content = bytearray(missing.library.read_bytes())
    flags_at = harmless_flags_offset(bytes(content), missing.version.encode())
    (flags,) = struct.unpack_from("<H", content, flags_at)
    struct.pack_into("<H", content, flags_at, flags | VER_FLG_WEAK)
    descriptor, part = tempfile.mkstemp(dir=missing.library.parent, prefix=missing.library.name)
    try:
        with os.fdopen(descriptor, "wb") as copy:
            copy.write(content)
        shutil.copymode(missing.library, part)
        Path(part).replace(missing.library)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(part).unlink()
        raise


def harmless_flags_offset(content: bytes, version: bytes) -> int:
    """Return the offset of the flags of the requirement of `version`. Raises as `weaken` does."""
    sections = _sections(content)
    requirements = _section(sections, 0x6FFFFFFE, "version requirements")
    names = sections[requirements.link]
    flags_at, index = _requirement(content, requirements, names, version)
    users = _symbols_of_version(content, sections, index)
    if users - NEVER_CALLED:
        used = b", ".join(sorted(users - NEVER_CALLED)).decode(errors="replace")
        raise NotHarmlessError(f"{version.decode()} is needed by {used}")
    return flags_at


@dataclass(frozen=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int
    count: int


def _sections(content: bytes) -> list[_Section]:
    if content[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    (table,) = struct.unpack_from("<Q", content, 0x28)
    width, number = struct.unpack_from("<HH", content, 0x3A)
    sections = []
    for at in range(table, table + width * number, width):
        kind, offset, size, link, count = struct.unpack_from("<4xI16xQQII", content, at)
        sections.append(_Section(kind, offset, size, link, count))
    return sections


def _section(sections: list[_Section], kind: int, name: str) -> _Section:
    for section in sections:
        if section.kind == kind:
            return section
    raise ValueError(f"the library has no {name}")


def _string(content: bytes, section: _Section, offset: int) -> bytes:
    start = section.offset + offset
    return content[start : content.index(b"\0", start)]


def _requirement(content: bytes, requirements: _Section, names: _Section, version: bytes) -> tuple[int, int]:
    """Return (offset of its flags, version index) from the Verneed entries, each with a chain of Vernaux."""
    need = requirements.offset
    for _ in range(requirements.count):
        count, _file, first, next_need = struct.unpack_from("<2xHIII", content, need)
        entry = need + first
        for _ in range(count):
            _flags, other, name, next_entry = struct.unpack_from("<4xHHII", content, entry)
            if _string(content, names, name) == version:
                return entry + 4, other & 0x7FFF
            entry += next_entry
        need += next_need
    raise ValueError(f"the library does not require {version.decode()}")


def _symbols_of_version(content: bytes, sections: list[_Section], index: int) -> set[bytes]:
    """Return the names of the dynamic symbols bound to a version index: .gnu.version runs parallel to .dynsym."""
    symbols = _section(sections, 11, "dynamic symbols")
    versions = _section(sections, 0x6FFFFFFF, "symbol versions")
    names = sections[symbols.link]
    indexes = struct.unpack_from(f"<{versions.size // 2}H", content, versions.offset)
    bound = set()
    for number, version in enumerate(indexes):
        if version & 0x7FFF == index:
            (name,) = struct.unpack_from("<I", content, symbols.offset + 24 * number)
            bound.add(_string(content, names, name))
    return bound
