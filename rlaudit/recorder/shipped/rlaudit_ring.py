"""The last steps of all requests, of kept prompts and others, for the case that a process dies.

Of a long run a sample of prompts is kept, and what waits in memory for the disk is lost with its process. So a process
that takes requests or runs a model has a ring beside its file of lines, `HOST-PID-RANDOM.ring`: of a fixed size,
written as a step begins or ends, in the step's own thread, and removed at an orderly end with nothing in flight. That a
batch was computed waits for the next of these, or a quarter of a second: a write takes longer than all else about it.
What is written is the kernel's, so that SIGSEGV or SIGKILL of the process does not lose it; a power cut may. A copy of
the file is a snapshot at any time: no signal is needed, and none is taken from the training.

The file begins with 24 bytes, the schema (16 bytes, ends with zeros) and the size of a half (uint64), and has two
halves. Blocks are appended to one; when it is full, the other is begun anew with all that is in flight. A block is a
head of 20 bytes, little-endian, a JSON object, and its arrays. The head: length of object and arrays in bytes (uint32),
length of the object (uint32), the block's number (uint64, from 1), and the CRC-32 of what is before and behind it
(uint32). A half ends before the first block that is not whole or does not have the next number.
`arrays` of an object lists its arrays in order as [name, code, count]: "i" int32, "f" float32. `kind` is

    ring       first block of a half: at, pid, missed (records too many or too long to be written), left_out (requests
               in flight that did not fit into this half)
    prompt     prompt (number), length, [ids] (missing: there was no room for them)
    requests   requests: of each [number, at, request, engine (number; null: as a worker knows it), parent, lora,
               prompt, sampling, index]
    step       step (as in `steps`), at (its stamp), engine, cached, ended [[number, finish]], [numbers] (of requests, 0
               for an unknown one), [counts] (tokens of each; missing: one), [ids], [logprobs] (NaN: not returned;
               missing: of none, or for want of time)
    gone       at, numbers, finish: requests that ended elsewhere, by a stop string or an abort
    batch      batch (number), at, [numbers], [tokens] (of each): what a worker begins to compute
    computed   batch, at, error: the worker's call has returned; a GPU may still compute
    left       at, requests (in flight), computing (whether a batch failed or has not returned): an orderly end
    another    a record of the recording, of CALLS

Logprobs, a third of what a step costs, are left out while the ring takes more than its share of the time, 0.5 %.
Requests are written with the next block of another kind. The file is written by offset and not mapped into memory: a
page that the file system cannot give (a full or failing disk, a file that was cut) would end the training by SIGBUS,
and a fresh page costs as much as a write (measured on ext4: 3.4 and 4.8 us). No descriptor stays open, so none is
inherited or mistaken. Standard library and Python 3.9.
"""

import contextlib
import os
import struct
import time
import zlib
from itertools import chain, groupby

import rlaudit_recorder as recorder

SCHEMA = "rlaudit-ring/1"
BEGINNING = 24
WHAT = "the last steps of all requests"
# A server that hangs would hold up the training's own thread: rings are written on the disks of this host alone.
LOCAL = frozenset("ext2 ext3 ext4 xfs btrfs f2fs zfs bcachefs overlay tmpfs ramfs".split())
CALLS = frozenset("event repeats load failed dropped sampling".split())
OF_A_WORKER = 8  # the ring of a process without requests has this part of the size: it holds no tokens
# A write takes some microseconds. One that takes this long was held up by the disk, not by a busy processor alone.
SLOW_SECONDS = 0.5
SHARE = 0.005  # of the time: with the rest of the recorder 1 %
STEPS_OF_A_SHARE = 100  # over which it is taken
AGAIN = 0.5  # of its share, at most, the ring takes before it takes logprobs again: these are less than half of it
MOST_SLOW_SECONDS = 5.0
WORKER = "worker"  # in place of an engine, for what a worker is given
MOST_WAITING = 100  # requests
MOST_LEFT_WAITING = 10_000  # while a thread writes
MOST_OF_A_REQUEST = 400  # bytes, about
# Objects of every step: JSON's encoder takes three times as long.
BATCH = '{"kind":"batch","batch":%d,"at":%r,"arrays":[%s]}'
COMPUTED = '{"kind":"computed","batch":%d,"at":%r,"error":null}'
STEP = '{"kind":"step","step":%d,"at":%r,"engine":%s,"cached":%d,"ended":%s,"arrays":[%s]}'
PROMPT_OF_A_REQUEST = 6  # its place among what is noted of one
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


def close(process):
    """Note which processes of this one have died, and end its ring."""
    died, limit = list(_died()), time.monotonic() + DYING_SECONDS
    # A process that dies closes its pipes first: this one may notice, and end, before the other one has ended.
    while not died and process.ring and process.ring.in_flight() and time.monotonic() < limit:
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
        recorder.drop(WHAT, "--redact: a ring holds token ids")
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
    ring = _Ring(process, size if takes_requests else size // OF_A_WORKER)
    return ring if ring.path else False


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

    numbers: of requests in flight, by engine and name. about: of each number, its record and its prompt's ids. same: of
    each engine, the names in the last step, and their numbers as an array. waiting: records for the next write. due:
    whether they are to be written now. part: the step of V0 that is being filled. free: a lock that is never waited
    for: the thread that writes holds its element. has_time: for logprobs. spent: seconds of the processor that steps
    took `since` then.
    """

    def __init__(self, process, size):
        self.path, self.half_size = os.path.splitext(process.file)[0] + ".ring", size // 2
        self.half, self.at, self.block, self.missed, self.room = 1, self.half_size, 0, 0, 0
        self.numbers, self.about, self.engines, self.requests = {}, {}, {}, 0
        self.prompt, self.waiting, self.due, self.same = (None, 0), [], False, {}
        self.part, self.part_step, self.part_of, self.part_ended = [], None, None, []
        self.batches, self.computing, self.slow, self.free = 0, False, 0.0, [True]
        self.has_time, self.spent, self.steps, self.since = True, 0.0, 0, time.monotonic()
        file = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, struct.pack("<16sQ", SCHEMA.encode(), self.half_size))
        finally:
            os.close(file)
        try:
            self.write(self.new_half())
        except OSError:
            os.unlink(self.path)
            raise

    # What is written ---------------------------------------------------------------------------------------------

    def request(self, engine, name, named, prompt, sampling=None, index=None):
        """Note a request that arrives. named: its names, without secrets. prompt: its ids, if known."""
        if len(self.about) > recorder.MOST_REMEMBERED:
            self.give_up("there are more than %d requests in flight" % recorder.MOST_REMEMBERED)
            return
        self.requests += 1
        number = self.requests
        engine_number = None if engine == WORKER else self.engines.setdefault(engine, len(self.engines) + 1)
        if prompt is not None and self.prompt[0] is not prompt:
            self.prompt = (prompt, self.prompt[1] + 1)
            self.waiting.append(self.of_prompt(self.prompt[1], prompt))
        place = None if prompt is None else self.prompt[1]
        named = (named["request"], engine_number, named.get("parent"), named.get("lora"))
        row = (number, time.monotonic(), *named, place, sampling, index)
        by_name = self.numbers.setdefault(engine, {})
        self.about.pop(by_name.get(name), None)  # one of that name that was not seen to end
        by_name[name] = number
        self.about[number] = (row, prompt)
        self.same.pop(engine, None)
        self.waiting.append((row, ()))
        if len(self.waiting) >= MOST_WAITING:
            self.put()

    def of_prompt(self, number, ids):
        """Return the record of a prompt, with its ids if there is room for them: steps are to be kept as well."""
        record, takes = {"kind": "prompt", "prompt": number, "length": len(ids)}, 4 * len(ids)
        if takes > self.room:
            return record, ()
        self.room -= takes
        return record, [_whole("ids", ids)]

    def step(self, engine, outputs, names, ids, counts, taken, step, stamp, cached, ended):
        """Note what all requests got. taken: logprobs that the caller does not get. ended: [(name, output)]."""
        began = time.thread_time()
        arrays, single = [self.coded(engine, names)], counts.count(1) == len(counts)
        if single:
            arrays.append(_whole("ids", [token for (token,) in ids]))
        else:
            arrays += [_whole("ids", list(chain.from_iterable(ids))), _whole("counts", counts)]
        values = _logprobs(outputs, taken, counts, single) if self.has_time else None
        if values is not None:
            arrays.append(_floats(values))
        by_name = self.numbers.get(engine, {})
        over = [[by_name.get(name, 0), str(output.finish_reason)] for name, output in ended]
        number, finished = self.engines.get(engine) or "null", recorder._JSON.encode(over) if over else "[]"
        self.put(STEP % (step, stamp, number, cached, finished, _listed(arrays)), arrays)
        self.spent += time.thread_time() - began
        self.steps += 1
        if self.steps == STEPS_OF_A_SHARE:
            now = time.monotonic()
            self.has_time = self.spent < SHARE * (1 if self.has_time else AGAIN) * (now - self.since)
            self.spent, self.steps, self.since = 0.0, 0, now

    def begin_part(self, engine, step):
        """Begin a step of V0, whose requests come one by one; it is written when the next one, or a batch, begins."""
        self.put()
        self.part_step, self.part_of = step, (engine, time.monotonic())

    def ends_in_part(self, engine, name, finish):
        """Note that a request of V0 ends with the step that is being filled."""
        number = self.numbers.get(engine, {}).get(name)
        if number is not None:
            self.part_ended.append([number, finish])
            self.gone(engine, (name,), None)

    def taken_part(self):
        """Return the step of V0 that is not written yet, as records."""
        if not self.part:
            return ()
        part = _taken(self.part)
        engine, at = self.part_of
        numbers, sequences, lengths, counts = zip(*part)
        if counts.count(1) == len(counts):
            ids = [seq.data.output_token_ids_array[length - 1] for seq, length in zip(sequences, lengths)]
            rows = [seq.output_logprobs[length - 1] for seq, length in zip(sequences, lengths)]
        else:
            spans = [slice(length - tokens, length) for length, tokens in zip(lengths, counts)]
            ids = [token for seq, span in zip(sequences, spans) for token in seq.data.output_token_ids_array[span]]
            rows = [row for seq, span in zip(sequences, spans) for row in seq.output_logprobs[span]]
        logprobs = [row[token].logprob for row, token in zip(rows, ids)]
        arrays = [_whole("numbers", numbers), _whole("ids", ids), _whole("counts", counts), _floats(logprobs)]
        ended, self.part_ended = self.part_ended, []
        fields = {"kind": "step", "step": self.part_step, "at": at, "engine": self.engines.get(engine)}
        return ((({**fields, "cached": None, "ended": ended}), arrays),)

    def coded(self, engine, names):
        """Return the numbers of requests; of those of the step before they are encoded already."""
        same = self.same.get(engine)
        if same is None or same[0] != names:
            by_name = self.numbers.get(engine, {})
            same = self.same[engine] = (names, _whole("numbers", [by_name.get(name, 0) for name in names]))
        return same[1]

    def gone(self, engine, names, finish):
        """Forget requests that have ended, and write it if no step says it."""
        if not names:
            return
        by_name = self.numbers.get(engine, {})
        numbers = [by_name.pop(name) for name in names if name in by_name]
        for number in numbers:
            del self.about[number]
        if numbers:
            self.same.pop(engine, None)  # a name may come again
        if numbers and finish is not None:
            self.put({"kind": "gone", "at": time.monotonic(), "numbers": numbers, "finish": finish})

    def batch(self, tokens, finished):
        """Note what a worker begins to compute: tokens by the names of requests. finished: names that are over."""
        self.gone(WORKER, finished, None)
        names = list(tokens)
        if self.same.get(WORKER, (None,))[0] != names:
            by_name = self.numbers.get(WORKER, {})
            for name in [name for name in names if name not in by_name]:
                self.request(WORKER, name, {"request": recorder._secrets.mask(name)}, None)
            if len(by_name) > 4 * len(names) + 1000:  # releases that do not say which are over
                self.gone(WORKER, [name for name in by_name if name not in tokens], None)
        self.batches += 1
        self.computing = True
        arrays = [self.coded(WORKER, names), _whole("tokens", list(tokens.values()))]
        self.put(BATCH % (self.batches, time.monotonic(), _listed(arrays)), arrays)

    def computed(self, error):
        """Note that the worker's call has returned."""
        self.computing = error is not None
        if not self.computing:
            self.put(COMPUTED % (self.batches, time.monotonic()), waits=True)
            return
        recorder._secrets.learn_text(recorder.error_text(error))
        text = recorder._secrets.mask(recorder.error_text(error))
        self.put({"kind": "computed", "batch": self.batches, "at": time.monotonic(), "error": text})

    # The file ----------------------------------------------------------------------------------------------------

    def put(self, *record, waits=False):
        """Write a record with its arrays, and before it what waits. If another thread writes, that one takes it.

        waits: the record is written with the next one.
        """
        if len(self.waiting) >= MOST_LEFT_WAITING:
            self.missed += 1
        elif record:
            self.waiting.append(record)
        if waits and len(self.waiting) < MOST_WAITING:
            return
        self.due = True
        while self.due and self.path is not None:
            try:
                self.free.pop()
            except IndexError:
                return
            try:
                self.due = False
                self.write_waiting()
            except OSError as error:
                self.give_up(str(error))
            finally:
                self.free.append(True)

    def put_late(self):
        """Write what waits, as no batch may come. The step of V0 that is being filled is left to its own thread."""
        if self.waiting and not self.part:
            self.put()

    def write_waiting(self):
        """Write what waits. Raises OSError."""
        records, first = [*_taken(self.waiting), *self.taken_part()], self.block
        data = self.as_blocks(records)
        if self.at + len(data) > self.half_size:
            self.block = first
            data = self.new_half() + self.as_blocks(records)
        if self.at + len(data) <= self.half_size:
            self.write(data)
        else:
            self.missed += len(records)

    def as_blocks(self, records):
        """Return the bytes of records, each with its arrays. Requests that come together are one block."""
        blocks = []
        for record, *given in _joined(records):
            arrays = given[0] if given else ()
            self.block += 1
            whole = {**record, "arrays": [array[:3] for array in arrays]} if type(record) is dict and arrays else record
            text = (whole if type(whole) is str else recorder._JSON.encode(whole)).encode()
            body = b"".join([text, *[array[3] for array in arrays]])
            head = struct.pack("<IIQ", len(body), len(text), self.block)
            blocks += [head, struct.pack("<I", zlib.crc32(body, zlib.crc32(head))), body]
        return b"".join(blocks)

    def new_half(self):
        """Begin the other half anew; return its first blocks: what is in flight, as far as half of it goes."""
        self.half, self.at, self.room = 1 - self.half, 0, self.half_size // 4
        prompts, records, room, left_out = set(), [], self.half_size // 2, 0
        for row, prompt in list(self.about.values()):
            parts, number = [(row,)], row[PROMPT_OF_A_REQUEST]
            if prompt is not None and number not in prompts:
                prompts.add(number)
                parts.insert(0, self.of_prompt(number, prompt))
            room -= MOST_OF_A_REQUEST + sum(array[2] * 4 for _, *arrays in parts for array in chain(*arrays))
            if room > 0:
                records += parts
            else:
                left_out += 1
        begins = {"kind": "ring", "at": time.monotonic(), "pid": os.getpid(), "missed": self.missed}
        return self.as_blocks([({**begins, "left_out": left_out},), *records])

    def write(self, data):
        """Write at the end of this half. Raises OSError."""
        began = time.perf_counter()
        file = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            written = os.pwrite(file, data, BEGINNING + self.half * self.half_size + self.at)
        finally:
            os.close(file)
        if written < len(data):
            raise OSError("the disk is full")
        self.at += written
        took = time.perf_counter() - began
        if took > SLOW_SECONDS:
            self.slow += took
            if self.slow > MOST_SLOW_SECONDS:
                self.give_up("the disk held up steps for %.1f s" % self.slow)

    def in_flight(self):
        """Return how many requests of a front end have not ended."""
        return sum(len(names) for engine, names in self.numbers.items() if engine != WORKER)

    def give_up(self, why):
        """Remove a ring that cannot go on: what is in it would soon not be the last steps."""
        path, self.path = self.path, None
        recorder._process.ring = False
        recorder.drop(WHAT, why)
        with contextlib.suppress(OSError):
            os.unlink(path)

    def ends(self, died):
        """Remove the ring at an orderly end, unless something was in flight or a process of this one has died."""
        if self.path is None:
            return
        requests = self.in_flight()
        if requests or self.computing or died:
            self.put({"kind": "left", "at": time.monotonic(), "requests": requests, "computing": self.computing})
        else:
            path, self.path = self.path, None
            os.unlink(path)


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
        over = getattr(scheduled, "finished_req_ids", None) or getattr(scheduled, "finished_requests_ids", None)
        note(process, "batch", tokens, over or ())
        call.noted["batch"] = True


def _batch_ends(call, error):
    if "batch" in call.noted:
        note(recorder._process, "computed", error)


def _taken(waiting):
    """Take all of a list that other threads append to."""
    taken = waiting[:]
    del waiting[: len(taken)]
    return taken


def _joined(records):
    """Yield records, requests that follow one another as one: a record each takes longer than all else about them."""
    for are_requests, run in groupby(records, lambda record: type(record[0]) is tuple):
        if are_requests:
            yield ({"kind": "requests", "requests": [row for row, *_ in run]},)
        else:
            yield from run


def _listed(arrays):
    return ",".join(['["%s","%s",%d]' % array[:3] for array in arrays])


def _whole(name, values):
    return (name, "i", len(values), struct.pack("<%di" % len(values), *values))


def _floats(values):
    return ("logprobs", "f", len(values), struct.pack("<%df" % len(values), *values))


def _logprobs(outputs, taken, counts, single):
    """Return the logprobs of the sampled tokens; None for none. Each request has tokens, logprobs and ranks, which are
    lists, and arrays since 0.12.0.
    """
    if single and not taken:
        with contextlib.suppress(TypeError):  # a request without logprobs
            if type(outputs[0].new_logprobs[1]) is list:
                return [output.new_logprobs[1][0][0] for output in outputs]
            return [output.new_logprobs[1].item(0) for output in outputs]
    rows = [taken.get(output.request_id, output.new_logprobs) for output in outputs]
    if rows.count(None) == len(rows):
        return None
    each = (recorder._sampled(None if row is None else row[1], count) for row, count in zip(rows, counts))
    return list(chain.from_iterable(each))
