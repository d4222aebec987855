"""Stands in for uv: makes a real interpreter, writes empty packages into it, and can fail or wait on demand.

FAKE_UV_LOG       file that takes one line per call
FAKE_UV_FAILS     command that fails, and FAKE_UV_SAYS what it prints then
FAKE_UV_LOCK      what is resolved, and lies there afterwards
FAKE_UV_BROKEN    module that cannot be imported afterwards
FAKE_UV_REACHED, FAKE_UV_GO   named pipes: tell that the installation began, wait until told to go on
"""

import os
import sys
import venv
from pathlib import Path

LOCK = "nvidia-cuda-runtime==13.0.96\ntorch==2.13.0\ntransformers==4.57.6"
MODULES = ("torch", "transformers", "safetensors/__init__", "safetensors/torch")


def main(words: list[str]) -> int:
    words = words[2:]  # --project FOLDER
    command = words[1] if words[0] == "pip" else words[0]
    with Path(os.environ["FAKE_UV_LOG"]).open("a", encoding="utf-8") as log:
        log.write(command + "\n")
    if os.environ.get("FAKE_UV_FAILS") == command:
        sys.stderr.write(os.environ["FAKE_UV_SAYS"])
        return 2
    if command == "--version":
        print("uv 0.0.0 (fake)")
    elif command == "venv":
        venv.create(words[-1], with_pip=False, symlinks=True)
    elif command in {"compile", "freeze"}:
        print(os.environ.get("FAKE_UV_LOCK", LOCK))
    elif command == "install":
        install(Path(words[words.index("--python") + 1]))
    return 0


def install(python: Path) -> None:
    if "FAKE_UV_REACHED" in os.environ:
        Path(os.environ["FAKE_UV_REACHED"]).write_text("reached", encoding="utf-8")
        Path(os.environ["FAKE_UV_GO"]).read_text(encoding="utf-8")
    packages = next((python.parent.parent / "lib").glob("python3.*")) / "site-packages"
    for module in MODULES:
        file = packages / f"{module}.py"
        file.parent.mkdir(exist_ok=True)
        broken = os.environ.get("FAKE_UV_BROKEN") == module
        file.write_text("raise ImportError('torch was built for another planet')\n" if broken else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
