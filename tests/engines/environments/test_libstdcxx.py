import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from rlaudit.engines.environments.libstdcxx import MissingVersion, NotHarmlessError, missing_version, weaken

WANTED = "GLIBCXX_3.4.32"
MARKER = "_ZSt21ios_base_library_initv"


def compiled(folder: Path, symbol: str, call: bool) -> Path:
    """A library that refers to `symbol@GLIBCXX_3.4.32` of a stand-in libstdc++ which is compiled beside it."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to make a small library with")
    folder.mkdir(exist_ok=True)
    (folder / "std.c").write_text(f"void {symbol}(void) {{}}\n")
    (folder / "std.map").write_text(f"{WANTED} {{ global: {symbol}; local: *; }};\n")
    body = f"void {symbol}(void); void f(void) {{ {symbol}(); }}" if call else f'__asm__(".globl {symbol}");'
    (folder / "user.c").write_text(body + "\nint answer(void) { return 42; }\n")
    standard = folder / "libstdc++.so.6"
    soname = "-Wl,-soname,libstdc++.so.6"
    shared = [compiler, "-shared", "-fPIC", "-nostdlib"]
    subprocess.run([*shared, soname, "-Wl,--version-script=std.map", "-o", standard, "std.c"], cwd=folder, check=True)
    library = folder / "user.so"
    subprocess.run([*shared, "-Wl,--no-as-needed", "-o", library, "user.c", standard], cwd=folder, check=True)
    # The system's older libstdc++: the same symbol is there, its version is not.
    (folder / "std.map").write_text("GLIBCXX_3.4 { global: *; };\n")
    subprocess.run([*shared, soname, "-Wl,--version-script=std.map", "-o", standard, "std.c"], cwd=folder, check=True)
    return library


def load(library: Path) -> str:
    """What the dynamic loader says about the library in a fresh process; empty when it loads and works."""
    program = "import ctypes, sys; assert ctypes.CDLL(sys.argv[1]).answer() == 42"
    ended = subprocess.run(
        [shutil.which("python3") or "python3", "-c", program, str(library)],
        env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.stderr.strip().rpartition("\n")[2]


def test_a_library_that_only_marks_the_version_loads_afterwards(tmp_path: Path) -> None:
    library = compiled(tmp_path, MARKER, call=False)
    missing = missing_version(load(library))
    assert missing == MissingVersion(WANTED, library)
    weaken(missing)
    assert load(library) == ""


def test_a_version_that_something_else_needs_is_left_alone(tmp_path: Path) -> None:
    library = compiled(tmp_path, "something_that_is_called", call=True)
    before = library.read_bytes()
    with pytest.raises(NotHarmlessError, match=r"GLIBCXX_3\.4\.32 is needed by something_that_is_called"):
        weaken(MissingVersion(WANTED, library))
    assert library.read_bytes() == before


def test_only_two_bytes_change_and_a_hard_linked_original_stays_as_it_was(tmp_path: Path) -> None:
    library = compiled(tmp_path, MARKER, call=False)
    library.chmod(0o755)
    cached = tmp_path / "in-the-cache.so"
    os.link(library, cached)
    before = library.read_bytes()
    weaken(MissingVersion(WANTED, library))
    after = library.read_bytes()
    assert cached.read_bytes() == before
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 1
    assert library.stat().st_mode & 0o777 == 0o755
    assert not list(tmp_path.glob("user.so?*"))


def test_what_is_no_library_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "text.so"
    file.write_bytes(struct.pack("<4s60x", b"text"))
    with pytest.raises(ValueError, match="not a 64-bit little-endian ELF file"):
        weaken(MissingVersion(WANTED, file))


def test_other_import_errors_are_not_taken_for_a_missing_version() -> None:
    assert missing_version("ModuleNotFoundError: No module named 'vllm._C'") is None
