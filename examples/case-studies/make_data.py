"""Make the data of the case studies again: `python make_data.py [NAME...]`, into the folders beside this file.

Every data set comes from a toy language model, an engine that samples from it and a trainer that scores it
(`making/`), with the fault of the thread built into one of the three. No part of rlaudit is used.
"""

import sys
import zlib
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "making"))

import inference_cases  # noqa: E402
import semantic_cases  # noqa: E402

CASES = {**semantic_cases.CASES, **inference_cases.CASES}


def make(name, folder):
    """The data of one case study in `folder`; the same on every machine up to the last digits."""
    CASES[name](folder, np.random.default_rng(zlib.crc32(name.encode())))


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        make(name, HERE / name)
        print(name)
