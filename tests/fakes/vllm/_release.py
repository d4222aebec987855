"""Which release this stand-in plays: the one that the interpreter's installed metadata names, as for a real package."""

from importlib import metadata

VERSION = tuple(int(part) for part in metadata.version("vllm").split("."))
IS_V1 = VERSION >= (0, 9)
HEAD_CAN_BE_FLOAT32 = VERSION >= (0, 26)
