"""The libraries V1's CPU workers want to see in LD_PRELOAD, found or stood in for.

Later vLLM releases refuse to start a CPU worker unless LD_PRELOAD names `libtcmalloc` and, on x86, `libiomp5`
(vllm/v1/worker/cpu_worker.py, `check_preloaded_libs`). The allocator is a matter of speed, not of results.
Where the system has none, a link named like it, to a library that is loaded anyway, satisfies the check: the
dynamic loader recognises the same file and loads nothing twice.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from rlaudit.errors import NotFinished

_WORKER = Path("vllm") / "v1" / "worker" / "cpu_worker.py"
_SYSTEM_LIBRARIES = ("/usr/lib", "/lib", "/usr/local/lib", "/usr/lib64", "/opt/conda/lib")
_STAND_IN = "libtcmalloc_minimal.so.4"


@dataclass(frozen=True)
class Preload:
    """Libraries for LD_PRELOAD, in order, and what to say about them."""

    libraries: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def variables(self) -> dict[str, str]:
        """What to set for a cell."""
        return {"LD_PRELOAD": ":".join(map(str, self.libraries))} if self.libraries else {}


def preload_for(
    site_packages: Path, prefix: Path, folder: Path, system: tuple[str, ...] = _SYSTEM_LIBRARIES
) -> Preload:
    """Return what this engine's CPU worker asks for: nothing before the releases that check it.

    `prefix` is the environment's root, `folder` where a stand-in may be made.
    Raises NotFinished when tcmalloc is asked for and nothing can stand in for it.
    """
    if not sys.platform.startswith("linux"):
        return Preload()
    try:
        worker = (site_packages / _WORKER).read_text(encoding="utf-8")
    except FileNotFoundError:
        return Preload()
    if "check_preloaded_libs" not in worker:
        return Preload()
    libraries: list[Path] = []
    notes: list[str] = []
    openmp = prefix / "lib" / "libiomp5.so"
    if "libiomp" in worker and openmp.exists():
        libraries.append(openmp)
    if "libtcmalloc" in worker:
        # Some builds bring their own, which they would preload by themselves.
        allocator = _allocator((str(site_packages / "vllm" / "libs"), *system))
        if allocator is None:
            allocator = _stand_in(folder, libraries[0] if libraries else _any_loaded_library())
            notes.append(
                "tcmalloc is not installed here: a stand-in of that name satisfies the engine's check "
                "(slower, same results)"
            )
        libraries.insert(0, allocator)
    return Preload(tuple(libraries), tuple(notes))


def _allocator(folders: tuple[str, ...]) -> Path | None:
    for folder in folders:
        for pattern in (
            "libtcmalloc_minimal.so*",
            "libtcmalloc.so*",
            "*/libtcmalloc_minimal.so*",
            "*/libtcmalloc.so*",
        ):
            found = sorted(Path(folder).glob(pattern))
            if found:
                return found[0]
    return None


def _stand_in(folder: Path, target: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / _STAND_IN
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    return link


def _any_loaded_library() -> Path:
    """Return the C library of this very process: under any name that it is preloaded by, it is loaded already."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        if line.endswith((".so", ".so.6")) and "/libc" in line:
            return Path(line.split(maxsplit=5)[5])
    raise NotFinished(
        "tcmalloc is not installed and cannot be stood in for", "Install the package libtcmalloc-minimal4."
    )
