"""Which builds for CUDA an NVIDIA driver runs.

A driver runs every build for its own major version of CUDA, older or newer in the minor one (minor version
compatibility), and every build for an older major version. A newer major version needs a newer driver.
Source: NVIDIA, "CUDA Compatibility", and the table of driver versions in the release notes of the CUDA toolkit.
"""

import ctypes

from packaging.version import Version

LIBRARY = "libcuda.so.1"

# The oldest Linux driver for each major version of CUDA, minor version compatibility included.
LOWEST_DRIVER = {"11": "450.80.02", "12": "525.60.13", "13": "580.65.06"}


def driver_is_there() -> bool:
    """Return whether this machine has the driver's library, which every build for CUDA needs."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True


def offered_cuda(reported: int = 0) -> str:
    """Return the newest CUDA that this machine's driver offers, as `12.8`; empty without a driver.

    It is the larger of what NVML `reported` and what a program that starts here will see: a cuda-compat package on
    LD_LIBRARY_PATH raises it. Both numbers are cuda.h's: 1000 * major + 10 * minor.
    """
    version = ctypes.c_int(0)
    try:
        failed = ctypes.CDLL(LIBRARY).cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        failed = 1
    newest = max(reported, 0 if failed else version.value)
    return f"{newest // 1000}.{newest % 1000 // 10}" if newest else ""


def driver_runs(driver_cuda: str, cuda: str) -> bool:
    """Return whether a driver that offers CUDA `driver_cuda` (as `12.8`) runs a build for CUDA `cuda` (as `13.0`)."""
    return Version(driver_cuda).major >= Version(cuda).major


def lowest_driver(cuda: str) -> str:
    """Return the oldest driver that runs a build for CUDA `cuda`. Raises KeyError for an unknown major version."""
    return LOWEST_DRIVER[str(Version(cuda).major)]
