"""Commands under `rlaudit record`, with a stand-in for the recorder: the doors do not depend on what it writes.

The stand-in writes a recording with one engine and six tokens at the end of a process that has imported `vllm`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from rlaudit.recording.folder import RECORDER

ROOT = Path(__file__).parents[2]
STAND_IN = '''
"""A recorder that writes at the end of a process that has imported vllm."""
import atexit, json, os, sys

_watched = []

def register():
    if os.environ.get("RLAUDIT_RECORD") and not _watched:
        _watched.append(True)
        atexit.register(_write)

def _write():
    if "vllm" not in sys.modules:
        return
    out = os.environ["RLAUDIT_RECORD"]
    os.makedirs(out, exist_ok=True)
    process = {"kind": "process", "at": 1.0, "schema": "rlaudit-recording/1", "host": os.uname().nodename,
               "pid": os.getpid(), "argv": sys.argv}
    hooks = {"kind": "hooks", "at": 1.0, "hooked": []}
    engine = {"kind": "engine", "at": 1.0, "number": 1, "class": "EngineArgs", "written": {}, "effective": {}}
    dropped = {"kind": "dropped", "at": 1.5, "what": "tokens", "why": "the limit is reached"}
    totals = {"kind": "totals", "at": 2.0, "requests": 2, "sequences": 3, "tokens": 1006, "ended": False}
    with open(os.path.join(out, "host-%d-0.jsonl" % os.getpid()), "w") as file:
        for record in (process, hooks, engine, dropped, totals):
            file.write(json.dumps(record) + "\\n")
'''
# `python -m rlaudit` with another recorder in the place of its own.
DRIVER = """
import sys
from pathlib import Path
from rlaudit.cli.app import main
from rlaudit.recording import folder
folder.RECORDER = Path(sys.argv.pop(1))
main()
"""


def stand_in(folder, text=STAND_IN):
    """Return the path of a recorder with this text, in a folder of its own."""
    path = folder / "stand-in" / RECORDER.name
    shutil.copytree(RECORDER.parent, path.parent, dirs_exist_ok=True)
    path.write_text(text)
    return path


def record_words(folder, *words, recorder=STAND_IN):
    """Return the words of a `rlaudit record` in a folder."""
    return [sys.executable, "-c", DRIVER, str(stand_in(folder, recorder)), "record", *words]


def environment(folder, **variables):
    """Return an environment in which rlaudit and a module `vllm` can be imported."""
    modules = folder / "modules"
    modules.mkdir(exist_ok=True)
    if not (modules / "vllm").exists():
        (modules / "vllm.py").write_text("")
    kept = {name: value for name, value in os.environ.items() if name not in ("VLLM_PLUGINS", "RLAUDIT_RECORD")}
    return {**kept, "PYTHONPATH": f"{ROOT}{os.pathsep}{modules}", **variables}


def record(folder, *words, recorder=STAND_IN, stdin="", **variables):
    """Run `rlaudit record` in a folder to its end."""
    return subprocess.run(
        record_words(folder, *words, recorder=recorder),
        check=False,
        cwd=folder,
        env=environment(folder, **variables),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
    )


def python(code, *words):
    """Return the words of a Python command."""
    return [sys.executable, "-c", code, *words]
