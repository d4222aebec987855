"""The last steps of all requests, of kept prompts and others, for the case that a process dies.

What waits in memory for the disk is lost with its process. So a process that takes requests or runs a model has a ring
beside its file of lines, `HOST-PID-RANDOM.ring`: of a fixed size, written as a step begins or ends, in the step's own
thread, and removed at an orderly end with nothing in flight. It counts, and holds no token and no name: kept prompts
have theirs in the file of lines. What is written is the kernel's, so that SIGSEGV or SIGKILL of the process does not
lose it; a power cut may. A copy of the file is a snapshot at any time: no signal is needed, and none is taken from the
training.

The file has lines of 512 bytes, filled up with blanks; when it is full, the oldest ones are overwritten. Each is a JSON
object with `number` (from 0), `kind`, `at` and `in_flight` (requests of this process that had not ended). `kind` is

    step       at (its stamp), step (as in `steps`), requests, tokens, cached, ended (how many requests end with it, of
               those in flight). V0 has batches alone: its front end runs the worker
    ended      requests have ended elsewhere, by a stop string or an abort
    batch      batch (number), requests, tokens: what a worker begins to compute
    computed   batch, error: the worker's call has returned; a GPU may still compute
    load       tensors begin to arrive
    left       an orderly end with requests in flight, with a batch that failed or had not returned, or of a process
               whose child died

The file is written by offset and not mapped into memory: a page that the file system cannot give (a full or failing
disk, a file that was cut) would end the training by SIGBUS, and a fresh page costs as much as a write (measured on
ext4: 3.4 and 4.8 us). No descriptor stays open, so none is inherited or mistaken. Standard library and Python 3.9.
"""

import contextlib
import itertools
import os
import time

import rlaudit_recorder as recorder

WHAT = "the last steps of all requests"
# A server that hangs would hold up the training's own thread: rings are written on the disks of this host alone.
LOCAL = frozenset("ext2 ext3 ext4 xfs btrfs f2fs zfs bcachefs overlay tmpfs ramfs".split())
LINE_BYTES = 512
OF_A_WORKER = 8  # the ring of a process without requests has this part of the size
MOST_OF_AN_ERROR = 300  # bytes, as JSON
# Objects of every step: JSON's encoder takes three times as long.
LINE = '{"number":%d,"kind":"%s","at":%r,"in_flight":%d%s}'
# A write takes some microseconds. One that takes this long was held up by the disk, not by a busy processor alone.
SLOW_SECONDS = 0.5
MOST_SLOW_SECONDS = 5.0
DYING_SECONDS = 0.5
ENDED_BY_ITS_PARENT = -15  # a process that vLLM terminates at its own end


def note(process, what, *args, **kwargs):
    """Call a method of a process's ring, if it has one. A ring that fails is given up, and nothing else is."""
    ring = process.ring
    if ring:
        try:
            getattr(ring, what)(*args, **kwargs)
        except Exception as error:
            ring.give_up("it failed")
            recorder.failed("ring", error)


def ring_of(process):
    """Return the ring of a process, begun now if it has none; False if it is to have none."""
    try:
        if process.ring is None:
            process.ring = False
            process.ring = _begun(process)
    except Exception as error:
        recorder.drop(WHAT, recorder.error_text(error))
    return process.ring


def in_flight(process):
    """Return how many requests of a front end have not ended."""
    totals = process.totals
    return max(0, totals["requests"] - totals["sequences"] - totals["aborted"])


def close(process):
    """Note which processes of this one have died, and end its ring."""
    died, limit = list(_died()), time.monotonic() + DYING_SECONDS
    # A process that dies closes its pipes first: this one may notice, and end, before the other one has ended.
    while not died and process.ring and in_flight(process) and time.monotonic() < limit:
        time.sleep(0.01)
        died = list(_died())
    for pid, name, code in died:
        recorder.put("child", pid=pid, name=name, code=code)
    note(process, "ends", bool(died))


def _died():
    """Yield process id, name and exit code of processes that multiprocessing started here and that failed."""
    from multiprocessing import process as started

    for child in list(getattr(started, "_children", ())):
        code = child.exitcode
        if code not in (None, 0, ENDED_BY_ITS_PARENT):
            yield child.pid, child.name, code


def _begun(process):
    size = recorder._settings["ring"]
    if not size:
        return False
    if recorder._settings.get("redact"):
        recorder.drop(WHAT, "--redact: no rules say what of a ring is public")
        return False
    if process.file is None:
        recorder._begin_file(process)
    if process.file == os.devnull:
        return False
    system = _file_system(os.path.dirname(process.file))
    if system not in LOCAL:
        recorder.drop(WHAT, "the recording lies on %s, which may hold up a step" % system)
        return False
    # An engine core of its own has resolved no configuration.
    takes_requests = process.numbers["engine"] or process.totals["requests"]
    return _Ring(process, size if takes_requests else size // OF_A_WORKER)


def _file_system(folder):
    """Return the type of the file system that a folder lies on, as the kernel names it; "" if it does not say."""
    folder, system, longest = os.path.realpath(folder), "", -1
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                place, _, kind = line.partition(" - ")
                point = place.split()[4].replace("\\040", " ")
                inside = folder == point or folder.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= longest:  # of two on one point the later one covers the other
                    longest, system = len(point), kind.split()[0]
    except (OSError, IndexError):
        return ""
    return system


class _Ring:
    """The ring of one process.

    lines: how many it has. batches: how many have begun. computing: whether the last one failed or has not returned.
    slow: seconds for which the disk held up steps. Threads that write at once write lines of their own.
    """

    def __init__(self, process, size):
        self.process, self.path = process, os.path.splitext(process.file)[0] + ".ring"
        self.lines, self.numbers = max(1, size // LINE_BYTES), itertools.count()
        self.batches, self.computing, self.slow = 0, False, 0.0
        os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))

    def batch(self, requests, tokens):
        """Note what a worker begins to compute."""
        self.batches += 1
        self.computing = True
        self.put("batch", batch=self.batches, requests=requests, tokens=tokens)

    def computed(self, error):
        """Note that the worker's call has returned."""
        self.computing = error is not None
        text = recorder.error_text(error)
        if text is not None:
            recorder._secrets.learn_text(text)
            text = recorder._secrets.mask(text)
        self.put("computed", error=text, batch=self.batches)

    def put(self, kind, at=None, error=None, **counts):
        """Write a line. at: the time, now by default."""
        more = "".join([',"%s":%d' % count for count in counts.items()])
        if error is not None:
            more += ',"error":' + _fitting(error)
        number, at = next(self.numbers), time.monotonic() if at is None else at
        line = LINE % (number, kind, at, in_flight(self.process), more)
        self.write(number % self.lines, line.encode()[: LINE_BYTES - 1].ljust(LINE_BYTES - 1) + b"\n")

    def write(self, place, data):
        """Write a line at its place."""
        path, began = self.path, time.perf_counter()
        if path is None:
            return
        try:
            file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                written = os.pwrite(file, data, place * LINE_BYTES)
            finally:
                os.close(file)
        except OSError as error:
            self.give_up(str(error))
            return
        if written < len(data):
            self.give_up("the disk is full")
        took = time.perf_counter() - began
        if took > SLOW_SECONDS:
            self.slow += took
            if self.slow > MOST_SLOW_SECONDS:
                self.give_up("the disk held up steps for %.1f s" % self.slow)

    def give_up(self, why):
        """Remove a ring that cannot go on: what is in it would soon not be the last steps."""
        path, self.path = self.path, None
        recorder._process.ring = False
        recorder.drop(WHAT, why)
        if path is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)

    def ends(self, died):
        """Remove the ring at an orderly end, unless something was in flight or a process of this one has died."""
        if in_flight(self.process) or self.computing or died:
            self.put("left")
        elif self.path is not None:
            path, self.path = self.path, None
            os.unlink(path)


def _fitting(error):
    """Return the text of an error as JSON, cut so that it fits into a line."""
    text = recorder._JSON.encode(error)
    while len(text) > MOST_OF_AN_ERROR:
        error = error[: len(error) // 2]
        text = recorder._JSON.encode(error)
    return text


# Steps of a worker ---------------------------------------------------------------------------------------------------


def around_steps(before):
    """Return handlers of a worker's execute_model: what it begins to compute, before(call), and its return."""

    def begins(call):
        recorder.quietly("the batch of a step", _batch_begins, call)
        before(call)

    return begins, _batch_ends


def _batch_begins(call):
    scheduled = call.args[1] if len(call.args) > 1 else next(iter(call.kwargs.values()), None)
    tokens = getattr(scheduled, "num_scheduled_tokens", None)
    if tokens is None:  # V0; a worker that is not the first is given nothing
        groups = getattr(scheduled, "seq_group_metadata_list", None) or ()
        tokens = {group.request_id: group.token_chunk_size for group in groups}
    process = recorder._process
    if tokens and ring_of(process):
        recorder.start_writer(process)
        note(process, "batch", len(tokens), sum(tokens.values()))
        call.noted["batch"] = True


def _batch_ends(call, error):
    if "batch" in call.noted:
        note(recorder._process, "computed", error)
