"""Runs one cell inside the interpreter under audit.

Started as a plain file, never imported by rlaudit:  PYTHON -s worker.py CELL_DIR

Reads   CELL_DIR/job.json           what to run; `script` is the path in rlaudit's package of the file whose
                                    `run(job, channel)` does it
        CELL_DIR/environment.json   the variables to run it with, and those to run it without
        CELL_DIR/secrets.json       the secrets of these two; it is removed once it is read
Writes  CELL_DIR/events.jsonl       one line per step, flushed as it happens
        what the script writes through the channel (samples.jsonl, scores.npz)
        CELL_DIR/result.json        last of all and atomically; a cell without it did not finish

Only the standard library and the engine under audit may be imported here: an engine environment promises no pandas
and no rlaudit. Python 3.9 syntax. The parent sends what is printed to CELL_DIR/log.txt: every vLLM logs on stdout.
"""

import importlib.util
import json
import os
import signal
import stat
import sys
import time
import traceback
from fnmatch import fnmatchcase

SETTLED = "RLAUDIT_SETTLED"
# The guardian's pipe, as DESCRIPTOR:INODE: the process group of each holder dies when the last guardian does.
LIFELINE = "RLAUDIT_LIFELINE"
SECRETS = "secrets.json"


class Unsupported(Exception):
    """The engine refuses what the cell requires. A finding about the engine, not a failure of the run."""


class Channel:
    """The only output of this process; stdout belongs to the engine."""

    Unsupported = Unsupported

    def __init__(self, cell_dir, script, mask=lambda record: record):
        self._dir = cell_dir
        self._script = script
        self._mask = mask
        self._events = open(self.path("events.jsonl"), "a", encoding="utf-8")

    def path(self, name):
        """Return the path of a file in the cell's folder."""
        return os.path.join(self._dir, name)

    def emit(self, event, **fields):
        """Report progress to the parent. `phase` events name the boundary at which a failure is reported."""
        record = self._mask(dict(event=event, t=round(time.time(), 3), **fields))
        self._events.write(json.dumps(record) + "\n")
        self._events.flush()

    def phase(self, name):
        """Enter a phase: launch, load, generate or score."""
        self.current_phase = name
        self.emit("phase", name=name)

    current_phase = "launch"

    def neighbour(self, name):
        """Return the module of a file in the same folder as the job's script."""
        return load_script(os.path.join(os.path.dirname(self._script), name + ".py"))

    def write_lines(self, name, rows):
        """Write JSON lines atomically."""
        part = self.path(name + ".part")
        with open(part, "w", encoding="utf-8") as lines:
            for row in rows:
                # Only strings are masked: numbers are many and hold no secret.
                masked = {key: self._mask(value) if isinstance(value, str) else value for key, value in row.items()}
                lines.write(json.dumps(masked) + "\n")
        os.replace(part, self.path(name))

    def write_json(self, name, record):
        """Write one JSON document atomically."""
        part = self.path(name + ".part")
        with open(part, "w", encoding="utf-8") as document:
            json.dump(self._mask(record), document)
        os.replace(part, self.path(name))


def read_document(cell_dir, name):
    """Return a document from the parent, with its secrets put back."""
    with open(os.path.join(cell_dir, name), encoding="utf-8") as stream:
        document = json.load(stream)
    try:
        with open(os.path.join(cell_dir, SECRETS), encoding="utf-8") as stream:
            taken = json.load(stream).get(name, ())
    except FileNotFoundError:
        return document
    return secrets().put_back(document, taken)


def forget_secrets(cell_dir):
    """Remove the file of secrets."""
    try:
        os.unlink(os.path.join(cell_dir, SECRETS))
    except FileNotFoundError:
        pass


def secrets():
    """Return the module rlaudit/secrets.py."""
    return load_script("secrets.py")


def settle(cell_dir):
    """Run in the parent's directory and with its variables, even if a container or launcher changed them.

    Some are read when Python or the loader starts (PYTHONUNBUFFERED, LD_PRELOAD): if any is wrong, this process starts
    itself again, once. Returns the names of those that are still wrong.
    """
    environment = read_document(cell_dir, "environment.json")
    if os.path.isdir(environment["directory"]):
        os.chdir(environment["directory"])
    again = os.environ.pop(SETTLED, None) is not None
    present = dict(os.environ)
    stray = [name for name in present if any(fnmatchcase(name, pattern) for pattern in environment["stray"])]
    kept = {name: value for name, value in present.items() if name not in stray}
    wanted = {**environment["handed_on"], **kept, **environment["variables"]}
    wrong = sorted(name for name in {**present, **wanted} if present.get(name) != wanted.get(name))
    if wrong and not again:
        # Python does not know its own path if the command sets no PATH.
        program = sys.executable or "/proc/self/exe"
        os.execve(program, [program, "-s", os.path.abspath(__file__), cell_dir], {**wanted, SETTLED: "1"})
    # Engines compile kernels with the ninja of their own environment.
    programs = os.path.dirname(sys.executable or os.path.realpath("/proc/self/exe"))
    os.environ["PATH"] = os.pathsep.join([programs, os.environ.get("PATH", os.defpath)])
    return wrong


def share_lifeline():
    """Pass the guardian's pipe on to the processes that multiprocessing starts, which closes unlisted descriptors.

    Runs in those processes, too, which import this file again. A launcher may have closed the pipe, and its number may
    be that of another file by now.
    """
    descriptor, _, inode = os.environ.get(LIFELINE, "").partition(":")
    try:
        status = os.fstat(int(descriptor))
    except (ValueError, OSError):
        return
    if not stat.S_ISFIFO(status.st_mode) or str(status.st_ino) != inode:
        return
    from multiprocessing import util

    start = util.spawnv_passfds
    util.spawnv_passfds = lambda path, args, passed: start(path, args, {*passed, int(descriptor)})


def keep_working_folder_out():
    """Make the processes that multiprocessing starts look for no module in the working directory.

    It starts them with `-c`, and Python before 3.11 does not know PYTHONSAFEPATH.
    """
    if sys.version_info >= (3, 11):
        return
    from multiprocessing import util

    start = util.spawnv_passfds
    out = "import sys; sys.path[:] = filter(None, sys.path); "
    util.spawnv_passfds = lambda path, args, passed: start(
        path, [out + word if before == "-c" else word for before, word in zip([None, *args], args)], passed
    )


def leave_init():
    """Go on as a child if this is the first process of a container.

    Linux delivers SIGTERM to the first process only if it has a handler, and the container ends with that process.
    """
    if os.getpid() != 1:
        return
    child = os.fork()
    if child == 0:
        return
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    while True:
        ended, status = os.wait()  # orphans come here, too
        if ended == child:
            os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


def load_script(name):
    """Return the module of a script by its path in rlaudit's package, which is not installed here."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    module_name = "rlaudit_cell_" + os.path.basename(name)[: -len(".py")]
    spec = importlib.util.spec_from_file_location(module_name, os.path.join(package, name))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(cell_dir):
    """Run the job and write a result in any case; the exit code is 0 only for status ok."""
    this_folder = os.path.dirname(os.path.abspath(__file__))
    # Python puts the script's folder first on the path: engines must not find our files by accident.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != this_folder]
    wrong = settle(cell_dir)
    job = read_document(cell_dir, "job.json")
    forget_secrets(cell_dir)
    leave_init()
    masking = secrets()
    masking.learn(dict(os.environ))
    masking.learn(job)
    channel = Channel(cell_dir, job.get("script", ""), masking.mask)
    started = time.time()
    channel.emit("started", pid=os.getpid())
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
    outcome["seconds"] = time.time() - started
    channel.write_json("result.json", outcome)
    channel.emit("finished", status=outcome["status"])
    return 0 if outcome["status"] == "ok" else 1


share_lifeline()
keep_working_folder_out()

if __name__ == "__main__":  # engines spawn processes that import this file again: keep the guard
    sys.exit(main(sys.argv[1]))
