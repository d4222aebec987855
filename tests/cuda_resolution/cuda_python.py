"""The Python of a release's CUDA wheel, read out of the wheel on the index: of 300 to 600 MB some 10.

Kept under the user's cache, beside the engines. Files are read in the order in which the wheel holds them, so that one
request serves many; its shared objects are not fetched at all.
"""

import shutil
import tempfile
from pathlib import Path

from extract_catalogue.remote_wheel import open_wheel
from packaging.version import Version

from rlaudit.engines.environments.package_index import releases
from rlaudit.engines.environments.pip_configuration import read_package_sources
from rlaudit.files.cache_folder import cache_folder


def cuda_python(version: str) -> Path:
    """A folder that holds `vllm/` with the wheel's Python, and its dist-info.

    Raises NotFinished when it cannot be had.
    """
    home = cache_folder() / "cuda-python" / version
    if home.is_dir():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f"{version}-", dir=home.parent))
    try:
        _unpack(version, part)
        try:
            part.replace(home)
        except OSError:
            if not home.is_dir():  # or another process was first
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return home


def _unpack(version: str, into: Path) -> None:
    sources = read_package_sources()
    published = releases("vllm", sources)[Version(version)].wheels[0]
    with open_wheel(published.url, sources.certificates) as wheel:
        for member in sorted(wheel.infolist(), key=lambda one: one.header_offset):
            if member.filename.endswith(".py") or ".dist-info/" in member.filename:
                wheel.extract(member, into)
