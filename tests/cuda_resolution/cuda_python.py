"""The Python of a release's CUDA wheel, read out of the wheel on the index: of 300 to 600 MB some 10.

Kept under the user's cache, beside the engines. Files are read in the order in which the wheel holds them, so that one
request serves many; its shared objects are not fetched at all.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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


def ran(
    command: Sequence[str], script: Path, job: Mapping[str, Any], tree: Path, folder: Path, **more: str
) -> "subprocess.CompletedProcess[str]":
    """Run a script on the wheel's Python, with its job.json and the place of its out.json. more: variables."""
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "PYTHON", "HF_"))}
    about = {
        "PYTHONPATH": str(tree),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CACHE_ROOT": str(folder / "cache"),
        # FlashInfer's compiled kernels are there, so that nobody looks for them on the network.
        "VLLM_HAS_FLASHINFER_CUBIN": "1",
    }
    words = [*command, "-s", str(script), str(folder / "job.json"), str(folder / "out.json")]
    return subprocess.run(
        words, env={**clean, **about, **more}, capture_output=True, text=True, check=False, cwd=folder
    )
