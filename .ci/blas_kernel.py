"""Prints which of OpenBLAS's kernels numpy has chosen for this processor; nothing where numpy has another BLAS."""

import ctypes
from pathlib import Path

import numpy as np

for library in (Path(np.__file__).parents[1] / "numpy.libs").glob("libscipy_openblas*"):
    name = ctypes.CDLL(str(library)).scipy_openblas_get_corename64_
    name.restype = ctypes.c_char_p
    print(name().decode())
