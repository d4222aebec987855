"""Which release this stand-in plays: the one that the interpreter's installed metadata names, as for a real package.

FAKE_VLLM_GPU (any text) makes a release that has both engines choose as on a recent GPU: V1, unless VLLM_USE_V1=0.
"""

import os
from importlib import metadata

NAME = metadata.version("vllm")
VERSION = tuple(int(part) for part in NAME.split("."))
HAS_V0 = VERSION < (0, 11)
HEAD_CAN_BE_FLOAT32 = VERSION >= (0, 26)
V1_IS_SUPPORTED = not HAS_V0 or bool(os.environ.get("FAKE_VLLM_GPU"))
IS_V1 = V1_IS_SUPPORTED and not (HAS_V0 and os.environ.get("VLLM_USE_V1") == "0")
V1_IS_REFUSED = not V1_IS_SUPPORTED and os.environ.get("VLLM_USE_V1") == "1"
