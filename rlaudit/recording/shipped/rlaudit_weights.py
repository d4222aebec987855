"""The weights of an engine: which tensors an update brought, and what the engine then holds of them.

Workers, of any class, are found when they take their device, models when they are loaded; from then on a call of
the model's `load_weights` is an update, from any caller. What was sent is no proof of what is held: a few fixed
elements of each tensor, its fingerprint, are noted as the tensor is sent, and read back before the first step after the
update. Before a step is the one moment for it: an engine that sleeps, its memory unmapped, takes none, no CUDA graph is
captured, and the thread and stream are the engine's own. The whole model is read then as well, and once a minute: what
has changed by then without an update was not announced.

Sharded, packed and experts' tensors are held against their part of what was sent. Not covered: tensors that are
quantised, spread by DTensor, or of a layout that a kernel made: what is sent has no counterpart. Standard library and
Python 3.9, beside the torch that vLLM has imported.
"""

import functools
import hashlib
import sys
import time
import weakref
import zlib
from array import array
from collections import Counter

import rlaudit_recorder as recorder

IDLE_SECONDS = 60.0  # between two readings of weights of which no update is known
DTYPES = ("torch.float32", "torch.bfloat16", "torch.float16")
MISSING = float("nan")
MOST_ELEMENTS, LEAST_ELEMENTS = 1 << 14, 4  # of all tensors together, 87 KiB as they are written; of each one
PADDING = 64  # vLLM makes vocabularies multiples of it (vocab_parallel_embedding.py)
MOST_EXPERT_TENSORS = 1 << 11  # that are noted of an update: more would cost a second of it
# The parts of an expert in checkpoints, with the tensor of all experts that holds them and their place in it.
EXPERT_PARTS = {"gate_proj": ("w13", 0), "up_proj": ("w13", 1), "down_proj": ("w2", 0)}
EXPERT_PARTS.update({"w1": ("w13", 0), "w3": ("w13", 1), "w2": ("w2", 0)})

_served = weakref.WeakKeyDictionary()  # models that workers serve: none is kept in memory for the recorder


class _Served:
    """What is known of a model that a worker serves.

    rank: of those that share the model's tensors. due: whether an update came since the model was read. sent: elements
    of each tensor of an update that were not read back yet, by name. sent_shapes, shapes: of what was sent, and of what
    is held. one_expert_in: of how many tensors of experts one is noted. parts: what is held of each tensor, by its name
    and shape. packed: the name of each part of a packed layer, with the layer's, all parts and its place among them.
    """

    def __init__(self, model, rank, ranks):
        self.model, self.rank, self.ranks = weakref.ref(model), rank, ranks
        self.due, self.asleep, self.read_at, self.values = True, False, 0.0, None
        self.one_expert_in = 1
        self.sent, self.sent_shapes, self.shapes, self.parts, self.packed = {}, {}, None, {}, {}
        for layer, parts in (getattr(model, "packed_modules_mapping", None) or {}).items():
            self.packed.update({part: (layer, parts, place) for place, part in enumerate(parts) if len(parts) > 1})
        self.mapper = getattr(model, "hf_to_vllm_mapper", None)

    def holds(self, shapes):
        """Note the shapes of what the model holds."""
        self.shapes = shapes
        self.parts.clear()
        experts = sum(shape[0] for name, shape in shapes.items() if name.endswith("w13_weight"))
        self.one_expert_in = 1 + 3 * experts // MOST_EXPERT_TENSORS

    def named(self):
        """Return the model's parameters with their names, those that share memory under each."""
        return self.model().named_parameters(remove_duplicate=False)

    def renamed(self, name):
        """Return the name that the model gives to a tensor. In 0.32.0 a part of a packed layer gets the layer's."""
        rename = getattr(self.mapper, "_map_name", None)
        return (rename(name) or name) if rename is not None else name


# Workers and loads ---------------------------------------------------------------------------------------------------


def _device_ends(call, error):
    """Record the device of a worker, and hook the worker's own methods, for a worker of any class."""
    if error is not None:
        return
    worker = call.args[0].worker
    # V1's CPU worker has none of its own.
    device, capability = getattr(worker, "device", None) or worker.vllm_config.device_config.device, None
    if getattr(device, "type", None) == "cuda":
        cuda = sys.modules["torch"].cuda
        device, capability = cuda.get_device_name(device), list(cuda.get_device_capability(device))
    instance = getattr(getattr(worker, "vllm_config", None), "instance_id", None)
    kind = {"class": recorder.name_of(type(worker)), "instance": instance}
    recorder.put("worker", **kind, device=str(device), capability=capability)
    recorder.wrap(type(worker), "load_model", "worker.load_model", None, _model_ends)
    handlers = dict.fromkeys(recorder.WORKER_METHODS, (recorder.call_begins, recorder.call_ends))
    handlers["sleep"] = (_sleep_begins, recorder.call_ends)
    handlers["wake_up"] = (recorder.call_begins, _wake_ends)
    handlers["execute_model"] = (_step_begins, None)
    for name, (before, after) in handlers.items():
        if callable(getattr(type(worker), name, None)):
            recorder.wrap(type(worker), name, "worker." + name, before, after)


def _model_ends(call, error):
    if error is not None:
        return
    worker = call.args[0]
    model = _model_of(worker)
    dtypes = Counter(str(tensor.dtype) for tensor in model.parameters())
    recorder.put("model", **{"class": recorder.name_of(type(model))}, dtypes=dtypes)
    # From here on a call of load_weights is an update. Frameworks make it past every RPC (TRL, verl, ms-swift).
    parallel = getattr(getattr(worker, "vllm_config", None), "parallel_config", None)
    ranks = getattr(parallel, "tensor_parallel_size", 1)
    _served[model] = _Served(model, (getattr(worker, "rank", None) or 0) % ranks, ranks)
    recorder.wrap(type(model), "load_weights", "model.load_weights", _load_begins, _load_ends)


def _model_of(worker):
    model = worker.get_model() if hasattr(worker, "get_model") else worker.model_runner.model
    while not hasattr(type(model), "load_weights") and hasattr(model, "runnable"):  # a wrapper of CUDA graphs
        model = model.runnable
    return model


def _served_of(worker):
    """Return what is known of a worker's model; None before it is loaded."""
    runner = getattr(worker, "model_runner", None)
    return None if runner is None or getattr(runner, "model", None) is None else _served.get(_model_of(worker))


def _load_begins(call):
    process = call.process
    served = _served.get(call.args[0])
    if served is None or process.loading:
        return
    calls = getattr(process.thread, "calls", None)
    inside = calls[-1]["call"] if calls else None
    if inside is None and process.rpc_run is not None:
        recorder.close_runs(process)
    process.loading += 1
    call.noted["loading"] = True
    recorder.start_writer(process)
    weights = call.argument(1, "weights")
    noted = _noted(process, served, weights, inside)
    noted = list(noted) if isinstance(weights, (list, tuple)) else noted
    if len(call.args) > 1:
        call.args = (call.args[0], noted, *call.args[2:])
    else:
        call.kwargs["weights"] = noted


def _load_ends(call, error):
    process, run = call.process, call.process.load_run
    if "loading" in call.noted:
        process.loading -= 1
        served = _served[call.args[0]]
        # What takes weights is awake, by this call or another.
        served.due, served.asleep = True, served.asleep and error is not None
        if run is not None:
            error = run["error"] or recorder.error_text(error)
            run.update(end=time.monotonic(), error=error)


def _noted(process, served, weights, inside):
    for pair in weights:
        recorder.quietly("model.load_weights", _note_tensor, process, pair[0], pair[1], inside)
        recorder.quietly("weights that are sent", _note_sent, served, pair[0], pair[1])
        yield pair


def _note_tensor(process, name, tensor, inside):
    if process.load_run is not None and name in process.load_run["tensors"]:  # the next update has begun
        put_load(process, process.load_run)
        process.load_run = None
    if process.load_run is None:
        number, now, totals = process.number("load"), time.monotonic(), process.totals
        process.load_run = {"load": number, "inside": inside, "end": now, "error": None, "tensors": {}}
        in_flight = totals["requests"] - totals["sequences"] - totals["aborted"] if totals["requests"] else None
        recorder.put("load", load=number, side="begin", inside=inside, names=[name], in_flight=in_flight)
    process.load_run["tensors"][name] = tuple(getattr(tensor, "shape", ()))


def put_load(process, run):
    """Write what a run of loads brought."""
    recorder.put("load", side="end", tensors=_set_of(process, run.pop("tensors")), **run)


def _set_of(process, tensors):
    """Return the number of a set of tensors, shapes by name; a set is written once."""
    key = hashlib.blake2b(repr(tensors).encode(), digest_size=16).digest()
    number = process.tensor_sets.get(key)
    if number is None:
        number = process.tensor_sets[key] = len(process.tensor_sets)
        recorder.put("tensors", tensors=number, names=list(tensors), shapes=list(tensors.values()))
    return number


# Fingerprints --------------------------------------------------------------------------------------------------------


def _sleep_begins(call):
    served = _served_of(call.args[0])
    if served is not None:
        served.asleep = True
    recorder.call_begins(call)


def _wake_ends(call, error):
    served, tags = _served_of(call.args[0]), call.argument(1, "tags")
    if served is not None and error is None and (tags is None or "weights" in tags):
        served.asleep = False
    recorder.call_ends(call, error)


def _note_sent(served, name, tensor):
    """Keep a few elements of a tensor that is sent: afterwards its memory may be used again."""
    shape = tuple(tensor.shape)
    if served.sent_shapes.get(name) != shape:
        served.sent_shapes[name] = shape
        served.parts.clear()
    if served.shapes is None:
        served.holds({held: tuple(parameter.shape) for held, parameter in served.named()})
    if served.one_expert_in > 1 and ".experts." in name and zlib.crc32(name.encode()) % served.one_expert_in:
        return
    share, starts = _share(served, name, shape) or (shape, (0,) * len(shape))
    served.sent[name] = (shape, _elements(tensor, share, starts))


def _step_begins(call):
    served = _served_of(call.args[0])
    if served is None or served.asleep or call.process.loading:
        return
    # A step without tokens runs nothing: an engine that is paused takes it asleep, too.
    if getattr(call.argument(1, "scheduler_output"), "total_num_scheduled_tokens", None) == 0:
        return
    now = time.monotonic()
    if served.due or now - served.read_at > IDLE_SECONDS:
        torch = sys.modules["torch"]
        if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            return
        served.due, served.read_at = False, now
        _read_weights(call.process, served)


def _read_weights(process, served):
    """Write what the model holds, and of what was sent since it was read last."""
    held = dict(served.named())
    shapes = {name: tuple(tensor.shape) for name, tensor in held.items()}
    if shapes != served.shapes:
        served.holds(shapes)
    sent, served.sent = served.sent, {}
    counterparts = [_counterpart(served, held, name, shape) for name, (shape, _) in sent.items()]
    elements = [_elements(tensor, served.shapes[name]) for name, tensor in held.items()]
    elements += [values for _, values in sent.values()] + [values for values, _ in counterparts]
    rows, ends = _on_the_host(elements), (len(held), len(held) + len(sent))
    values, values_sent, values_held = rows[: ends[0]], rows[ends[0] : ends[1]], rows[ends[1] :]
    fields = {"load": process.numbers["load"] or None, "sent": None}
    if sent:
        rounded = _rounded(values_sent, [dtype for _, dtype in counterparts])
        packed = [_packed(rows) for rows in (values_sent, rounded, values_held)]
        fields["sent"] = _set_of(process, {name: shape for name, (shape, _) in sent.items()})
        fields["values_sent"] = packed[0]
        fields["values_rounded"] = None if _same(packed[1], packed[0]) else packed[1]
        fields["values_held"] = None if _same(packed[2], packed[1]) else packed[2]
    values = _packed(values)
    if sent or served.values is None or not _same(values, served.values):
        served.values = values
        recorder.put("weights", tensors=_set_of(process, shapes), values=values, **fields)


def fingerprints(model, tensors):
    """Return {name: (elements of a tensor, elements that a model holds of it)}; NaN for what does not compare.

    model: whole in this process. tensors: (name, tensor) as they would be sent; rounded as the model holds them.
    """
    served = _Served(model, 0, 1)
    for name, tensor in tensors:
        _note_sent(served, name, tensor)
    held = dict(served.named())
    counterparts = [_counterpart(served, held, name, shape) for name, (shape, _) in served.sent.items()]
    rows = _on_the_host([row for _, row in served.sent.values()] + [row for row, _ in counterparts])
    rounded = _rounded(rows[: len(counterparts)], [dtype for _, dtype in counterparts])
    return dict(zip(served.sent, zip(rounded, rows[len(counterparts) :])))


def _packed(rows):
    """Return the rows as they are written: fewer elements of each if they are very many."""
    kept = max(LEAST_ELEMENTS, min(recorder.ELEMENTS, MOST_ELEMENTS // max(1, len(rows))))
    step = recorder.ELEMENTS // kept
    return recorder.Numbers(array("f", [value for row in rows for value in row[:: max(1, step)]]), "f")


def _same(one, other):
    return one.values.tobytes() == other.values.tobytes()  # NaN equals itself


# What lies where -----------------------------------------------------------------------------------------------------


def _place(served, name):
    """Return where a model holds a tensor that was sent: its name there, the expert, all parts, its place among them.

    The parts of a packed layer (q, k and v in qkv) lie in it one after another, by rows; experts' lie in one tensor.
    """
    if name in served.shapes:
        return name, (), (), 0
    owner, _, kind = name.rpartition(".")
    path, _, part = owner.rpartition(".")
    if part in served.packed:
        layer, parts, place = served.packed[part]
        held = served.renamed("%s.%s.%s" % (path, layer, kind))
        if held in served.shapes:
            return held, (), ["%s.%s.%s" % (path, sibling, kind) for sibling in parts], place
    experts, _, number = path.rpartition(".")
    if part in EXPERT_PARTS and number.isdigit() and served.ranks == 1:
        layer, place = EXPERT_PARTS[part]
        # In 0.32.0 they lie one module deeper than in 0.18.1.
        within = [served.renamed("%s.%s%s_%s" % (experts, deeper, layer, kind)) for deeper in ("", "routed_experts.")]
        held = within[1] if within[1] in served.shapes else within[0]
        return held, (int(number),), [name] * 2, place
    return served.renamed(name), (), (), 0


def _share(served, name, shape):
    """Return the shape and the first place of what this rank holds of a tensor that is sent; None if that is unknown.

    One dimension of it is shared among ranks, or none. A vocabulary may be padded.
    """
    place = _place(served, name)
    held = served.shapes.get(place[0])
    held = held and held[len(place[1]) :]
    if held is None or len(held) != len(shape) or 0 in shape:
        return None
    ranks, is_packed = served.ranks, bool(place[2])
    if ranks == 1:
        fits = held == shape or (held[1:] == shape[1:] and held[0] >= shape[0])
        return (shape, (0,) * len(shape)) if fits else None
    axes = [axis for axis in range(len(shape)) if held[axis] != shape[axis]]
    if not axes and not is_packed:
        return shape, (0,) * len(shape)
    # Ranks share the rows of each part of a packed layer alike.
    axis = 0 if is_packed else axes[0]
    size = shape[0] // ranks if is_packed else held[axis]
    padded = size * ranks - shape[axis]
    if axes not in ([], [axis]) or padded < 0 or (padded and size * ranks % PADDING):
        return None
    start = served.rank * size
    share = (*shape[:axis], max(0, min(size, shape[axis] - start)), *shape[axis + 1 :])
    return share, (*[0] * axis, start, *[0] * (len(shape) - axis - 1))


def _part(served, name, shape):
    """Return what a model holds of a tensor that was sent: the name there, the part's shape and its first place."""
    share = _share(served, name, shape)
    if share is None:
        return None
    held, expert, parts, place = _place(served, name)
    rows = []
    for part in parts:
        part_share = _share(served, part, served.sent_shapes[part]) if part in served.sent_shapes else None
        rows.append(None if part_share is None else part_share[0][0])
    # Heads of keys that are fewer than the ranks are held several times.
    if None in rows[:place] or (served.ranks > 1 and parts and (None in rows or sum(rows) != served.shapes[held][0])):
        return None
    part_shape = (*[1] * len(expert), *share[0])
    starts = (*expert, sum(rows[:place]), *[0] * len(shape))[: len(part_shape)]
    fits = all(start + size <= most for start, size, most in zip(starts, part_shape, served.shapes[held]))
    return (held, part_shape, starts) if fits else None


def _counterpart(served, held, name, shape):
    """Return the elements that a model holds of a sent tensor, and their dtype; (None, None) if it has none."""
    if (name, shape) not in served.parts:
        served.parts[name, shape] = _part(served, name, shape)
    part = served.parts[name, shape]
    return (None, None) if part is None else (_elements(held[part[0]], *part[1:]), held[part[0]].dtype)


def _elements(tensor, share, starts=None):
    """Return fixed elements of a tensor, or of a part of it, on its device; None if it has none that compare.

    share: the part's shape. starts: its first place.
    """
    data = getattr(tensor, "data", None)
    if str(getattr(data, "dtype", None)) not in DTYPES or type(data).__name__ == "DTensor":
        return None
    if 0 in share or data.device.type not in ("cpu", "cuda"):
        return None
    index = _flat_places(tuple(data.shape), share, starts or (0,) * len(share), data.device)
    return sys.modules["torch"].take(data, index)


@functools.lru_cache(maxsize=1 << 17)
def _flat_places(shape, share, starts, device):
    """Return `flat_places` as an index on a device."""
    return sys.modules["torch"].tensor(flat_places(shape, share, starts), device=device)


def flat_places(shape, share, starts):
    """Return ELEMENTS places that are spread over a part of a tensor, as indices of the flat tensor."""
    count, flat = 1, []
    for size in share:
        count *= size
    for place in range(recorder.ELEMENTS):
        left, stride, index = (2 * place + 1) * count // (2 * recorder.ELEMENTS), 1, 0
        for size, part, start in zip(reversed(shape), reversed(share), reversed(starts)):
            index += (left % part + start) * stride
            left, stride = left // part, stride * size
        flat.append(index)
    return flat


def _on_the_host(elements):
    """Return ELEMENTS floats of each tensor, MISSING for those that have none: one copy a device and dtype."""
    torch, by_kind = sys.modules["torch"], {}
    for place, values in enumerate(elements):
        if values is not None:
            by_kind.setdefault((values.device, values.dtype), []).append((place, values))
    rows = [[MISSING] * recorder.ELEMENTS for _ in elements]
    for pairs in by_kind.values():
        places, picked = zip(*pairs)
        for place, row in zip(places, torch.stack(picked).cpu().float().tolist()):
            rows[place] = row
    return rows


def _rounded(rows, dtypes):
    """Return what was sent, rounded to the dtypes in which the model holds it."""
    torch, by_dtype, rounded = sys.modules["torch"], {}, list(rows)
    for place, dtype in enumerate(dtypes):
        if dtype not in (None, torch.float32):
            by_dtype.setdefault(dtype, []).append(place)
    for dtype, places in by_dtype.items():
        for place, row in zip(places, torch.tensor([rows[place] for place in places]).to(dtype).float().tolist()):
            rounded[place] = row
    return rounded


HANDLERS = {"init_device": (None, _device_ends)}
