import sys
from pathlib import Path

import pytest

from rlaudit.engines.inside.preload import preload_for

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="LD_PRELOAD is Linux's")
CHECKS = 'def init_device():\n    check_preloaded_libs("libtcmalloc")\n    check_preloaded_libs("libiomp")\n'


def engine(tmp_path: Path, worker: str | None) -> tuple[Path, Path]:
    """(site-packages, prefix) of an environment whose CPU worker has this source."""
    site_packages = tmp_path / "site-packages"
    (site_packages / "vllm" / "v1" / "worker").mkdir(parents=True)
    if worker is not None:
        (site_packages / "vllm" / "v1" / "worker" / "cpu_worker.py").write_text(worker)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libiomp5.so").write_bytes(b"")
    return site_packages, tmp_path


@pytest.mark.parametrize("worker", [None, "def init_device(): pass\n"])
def test_releases_that_check_nothing_get_nothing(tmp_path: Path, worker: str | None) -> None:
    site_packages, prefix = engine(tmp_path, worker)
    assert preload_for(site_packages, prefix, tmp_path / "preload", system=()).variables == {}


def test_the_systems_allocator_is_preferred(tmp_path: Path) -> None:
    site_packages, prefix = engine(tmp_path, CHECKS)
    allocator = tmp_path / "system" / "x86_64-linux-gnu" / "libtcmalloc_minimal.so.4"
    allocator.parent.mkdir(parents=True)
    allocator.write_bytes(b"")
    preload = preload_for(site_packages, prefix, tmp_path / "preload", system=(str(tmp_path / "system"),))
    assert preload.variables == {"LD_PRELOAD": f"{allocator}:{prefix}/lib/libiomp5.so"}
    assert preload.notes == ()


def test_without_one_a_stand_in_points_at_a_library_that_is_loaded_anyway(tmp_path: Path) -> None:
    site_packages, prefix = engine(tmp_path, CHECKS)
    preload = preload_for(site_packages, prefix, tmp_path / "preload", system=())
    stand_in, openmp = preload.libraries
    assert stand_in.name.startswith("libtcmalloc")
    assert stand_in.samefile(openmp)
    assert "stand-in" in preload.notes[0]


def test_without_openmp_the_stand_in_is_the_c_library(tmp_path: Path) -> None:
    site_packages, prefix = engine(tmp_path, CHECKS)
    (prefix / "lib" / "libiomp5.so").unlink()
    (stand_in,) = preload_for(site_packages, prefix, tmp_path / "preload", system=()).libraries
    assert stand_in.read_bytes()[:4] == b"\x7fELF"
