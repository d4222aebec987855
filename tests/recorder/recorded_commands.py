"""Commands under `rlaudit record`, with a stand-in for the recorder: the doors do not depend on what it writes.

The stand-in writes a recording with one engine and six tokens at the end of a process that has imported `vllm`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from contextlib import ExitStack
from pathlib import Path

import rlaudit.recording.folder
from rlaudit.cli.app import BUG, main
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
    """Run `rlaudit record` in a folder to its end, in a fork of this process, which has imported rlaudit."""
    words, variables = ["record", *words], environment(folder, **variables)
    stood_in = stand_in(folder, recorder)
    with ExitStack() as stack:
        streams = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        streams[0].write(stdin.encode())
        streams[0].seek(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads of pytest-xdist, which the fork is without
            child = os.fork()
        if not child:
            _become(folder, words, variables, stood_in, streams)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for stream in streams:
            stream.seek(0)
        return subprocess.CompletedProcess(words, code, *(stream.read().decode() for stream in streams[1:]))


def _become(folder, words, variables, recorder, streams):
    """Be the command: this process ends."""
    code = BUG
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream.fileno(), number)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in enumerate("rww"))
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(variables)
        sys.path[:0] = variables["PYTHONPATH"].split(os.pathsep)
        rlaudit.recording.folder.RECORDER = recorder
        sys.argv, tempfile.tempdir = ["-c", *words], None
        main()
    except SystemExit as leaving:
        code = leaving.code
    finally:
        sys.stderr.flush()
        os._exit(code)


def python(code, *words):
    """Return the words of a Python command."""
    return [sys.executable, "-c", code, *words]
