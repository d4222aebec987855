"""The weights of an engine: which tensors an update brought, and what the engine then holds of them.

Workers, of whatever class, are found when they take their device, models when they are loaded; from then on a call of
the model's `load_weights` is an update, whoever makes it. What was sent is no proof of what is held: a few fixed
elements of each tensor, its fingerprint, are noted as the tensor is sent, and read back before the first step after the
update. Before a step is the one moment for it: an engine that sleeps, its memory unmapped, takes none, no CUDA graph is
captured, and the thread and stream are the engine's own. The whole model is read then as well, and once a minute: what
has changed by then without an update was not announced.

Not covered: tensors that are quantised, sharded over ranks or spread by DTensor: what is sent has no counterpart of the
same shape. Standard library and Python 3.9, beside the torch that vLLM has imported.
"""

import functools
import hashlib
import sys
import time
import weakref

import rlaudit_carried
import rlaudit_recorder as recorder

IDLE_SECONDS = 60.0  # between two readings of weights of which no update is known
DTYPES = ("torch.float32", "torch.bfloat16", "torch.float16")
MISSING = float("nan")  # one object: it equals itself in a list

_served = weakref.WeakKeyDictionary()  # models that workers serve: none is kept in memory for the recorder


class _Served:
    """What is known of a model that a worker serves.

    sent: elements of each tensor of an update that were not read back yet, by name. due: whether an update came since
    the model was read. packed: the name of each part of a packed layer, with the layer's and the parts before it.
    """

    def __init__(self, model, ranks):
        self.ranks, self.due, self.read_at, self.values = ranks, True, 0.0, None
        self.sent, self.shapes, self.packed = {}, {}, {}
        for layer, parts in (getattr(model, "packed_modules_mapping", None) or {}).items():
            self.packed.update({part: (layer, parts[:place]) for place, part in enumerate(parts) if len(parts) > 1})


# Workers and loads ---------------------------------------------------------------------------------------------------


def _device_ends(call, error):
    """Record the device of a worker, and hook the worker's own methods, of whatever class it is."""
    if error is not None:
        return
    worker = call.args[0].worker
    # V1's CPU worker has none of its own.
    device, capability = getattr(worker, "device", None) or worker.vllm_config.device_config.device, None
    if getattr(device, "type", None) == "cuda":
        cuda = sys.modules["torch"].cuda
        device, capability = cuda.get_device_name(device), list(cuda.get_device_capability(device))
    kind = {"class": recorder.name_of(type(worker)), "rank": getattr(worker, "rank", None)}
    front = rlaudit_carried.front_of(getattr(worker, "vllm_config", None))
    recorder.put("worker", **kind, device=str(device), capability=capability, front=front)
    recorder.wrap(type(worker), "load_model", "worker.load_model", None, _model_ends)
    handlers = dict.fromkeys(recorder.WORKER_METHODS, (recorder.call_begins, recorder.call_ends))
    for name, (before, after) in {**handlers, "execute_model": (_step_begins, None)}.items():
        if callable(getattr(type(worker), name, None)):
            recorder.wrap(type(worker), name, "worker." + name, before, after)


def _model_ends(call, error):
    if error is not None:
        return
    worker = call.args[0]
    model = _model_of(worker)
    dtypes, parameters = {}, 0
    for tensor in model.parameters():
        dtypes[str(tensor.dtype)] = dtypes.get(str(tensor.dtype), 0) + 1
        parameters += tensor.numel()
    kind = {"class": recorder.name_of(type(model)), "tensors": sum(dtypes.values())}
    recorder.put("model", **kind, dtypes=dtypes, parameters=parameters)
    # From here on a call of load_weights is an update. Frameworks make it past every RPC (TRL, verl, ms-swift).
    parallel = getattr(getattr(worker, "vllm_config", None), "parallel_config", None)
    _served[model] = _Served(model, getattr(parallel, "tensor_parallel_size", 1))
    recorder.wrap(type(model), "load_weights", "model.load_weights", _load_begins, _load_ends)


def _model_of(worker):
    model = worker.get_model() if hasattr(worker, "get_model") else worker.model_runner.model
    while not hasattr(type(model), "load_weights") and hasattr(model, "runnable"):  # a wrapper of CUDA graphs
        model = model.runnable
    return model


def _load_begins(call):
    process = recorder._process
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
    process, run = recorder._process, recorder._process.load_run
    if "loading" in call.noted:
        process.loading -= 1
        _served[call.args[0]].due = True
        if run is not None:
            error = run["error"] or recorder.error_text(error)
            run.update(calls=run["calls"] + 1, end=time.monotonic(), error=error)


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
        begun = {"load": number, "inside": inside, "begin": now, "end": now, "calls": 0, "error": None}
        process.load_run = {**begun, "tensors": {}}
        in_flight = totals["requests"] - totals["sequences"] - totals["aborted"] if totals["requests"] else None
        recorder.put("load", load=number, side="begin", inside=inside, names=[name], in_flight=in_flight)
    process.load_run["tensors"][name] = (str(getattr(tensor, "dtype", None)), tuple(getattr(tensor, "shape", ())))


def put_load(process, run):
    """Write what a run of loads brought."""
    recorder.put("load", side="end", tensors=_set_of(process, run.pop("tensors")), **run)


def _set_of(process, tensors):
    """Return the number of a set of tensors, (dtype, shape) by name; a set is written once."""
    key = hashlib.blake2b(repr(tensors).encode(), digest_size=16).digest()
    number = process.tensor_sets.get(key)
    if number is None:
        number = process.tensor_sets[key] = len(process.tensor_sets)
        dtypes, shapes = zip(*tensors.values())
        recorder.put("tensors", tensors=number, names=list(tensors), dtypes=dtypes, shapes=shapes)
    return number


# Fingerprints --------------------------------------------------------------------------------------------------------


def _note_sent(served, name, tensor):
    """Keep a few elements of a tensor that is sent: afterwards its memory may be used again."""
    elements = _elements(tensor, 0)
    served.sent[name] = (str(tensor.dtype), tuple(tensor.shape), elements)
    served.shapes[name] = tuple(tensor.shape)


def _step_begins(call):
    model = _model_of(call.args[0])
    served = _served.get(model)
    if served is None or recorder._process.loading:
        return
    now = time.monotonic()
    if served.due or now - served.read_at > IDLE_SECONDS:
        torch = sys.modules["torch"]
        if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            return
        served.due, served.read_at = False, now
        _read_weights(recorder._process, model, served)


def _read_weights(process, model, served):
    """Write what the model holds, and of what was sent since it was read last."""
    held = dict(model.named_parameters(remove_duplicate=False))
    tensors = {name: (str(tensor.dtype), tuple(tensor.shape)) for name, tensor in held.items()}
    sent, served.sent = served.sent, {}
    values = _on_the_host([_elements(tensor, 0) for tensor in held.values()])
    fields = {"load": process.numbers["load"] or None, "sent": None}
    if sent:
        counterparts = [_counterpart(served, held, name, shape) for name, (_, shape, _) in sent.items()]
        elements = [elements for _, _, elements in sent.values()]
        fields["sent"] = _set_of(process, {name: (dtype, shape) for name, (dtype, shape, _) in sent.items()})
        fields["values_sent"] = recorder.Numbers(_on_the_host(elements), "f")
        fields["values_rounded"] = recorder.Numbers(_on_the_host(list(map(_rounded, elements, counterparts))), "f")
        fields["values_held"] = recorder.Numbers(_on_the_host([elements for elements, _ in counterparts]), "f")
    if values == served.values and not sent:
        return
    served.values = values
    recorder.put("weights", tensors=_set_of(process, tensors), values=recorder.Numbers(values, "f"), **fields)


def _counterpart(served, held, name, shape):
    """Return the elements that a model holds of a tensor that was sent, and their dtype; (None, None) for none.

    The parts of a packed layer (q, k and v in qkv) lie in it one after another, by rows. A vocabulary may be padded.
    """
    offset, tensor = 0, held.get(name)
    owner, _, kind = name.rpartition(".")
    path, _, part = owner.rpartition(".")
    if tensor is None and part in served.packed and served.ranks == 1:
        layer, before = served.packed[part]
        shapes = [served.shapes.get("%s.%s.%s" % (path, other, kind)) for other in before]
        if all(shapes):
            offset, tensor = sum(rows for rows, *_ in shapes), held.get("%s.%s.%s" % (path, layer, kind))
    if tensor is None or tuple(tensor.shape[1:]) != shape[1:] or len(tensor.shape) != len(shape):
        return None, None
    rows = shape[0] if shape else 1
    # More rows than were sent are a layer's other parts or its padding, if no rank holds a share.
    if tensor.shape and (tensor.shape[0] < offset + rows or (tensor.shape[0] > rows and served.ranks > 1)):
        return None, None
    return _elements(tensor, offset, shape), tensor.dtype


def _rounded(elements, counterpart):
    """Return sent elements in the precision in which the model holds them."""
    held, dtype = counterpart
    return None if elements is None or held is None else elements.to(dtype).float()


def _elements(tensor, offset, shape=None):
    """Return fixed elements of a tensor as float32 where they are; None if it has none that compare.

    offset: the first row that counts. shape: of the part that counts; the whole tensor's if not given.
    """
    data = getattr(tensor, "data", None)
    if str(getattr(data, "dtype", None)) not in DTYPES or type(data).__name__ == "DTensor":
        return None
    shape = tuple(data.shape) if shape is None else shape
    if 0 in shape or data.device.type not in ("cpu", "cuda"):
        return None
    return data[_places(shape, offset, data.device)].float().reshape(-1)


@functools.lru_cache(maxsize=4096)
def _places(shape, offset, device):
    """Return an index of ELEMENTS places, spread over a tensor of this shape that begins with a row of another."""
    torch, count = sys.modules["torch"], 1
    for size in shape:
        count *= size
    flat = [(2 * place + 1) * count // (2 * recorder.ELEMENTS) for place in range(recorder.ELEMENTS)]
    index = []
    for size in reversed(shape):
        index.insert(0, [place % size for place in flat])
        flat = [place // size for place in flat]
    if index:
        index[0] = [place + offset for place in index[0]]
    return tuple(torch.tensor(places, device=device) for places in index)


def _on_the_host(elements):
    """Return elements of tensors as one list of ELEMENTS each, MISSING for those that have none: one copy a device."""
    torch, found = sys.modules["torch"], {}
    for place, one in enumerate(elements):
        if one is not None:
            # A tensor without dimensions has one element.
            whole = one if len(one) == recorder.ELEMENTS else one.repeat(recorder.ELEMENTS)
            found.setdefault(one.device, []).append((place, whole))
    rows = [[MISSING] * recorder.ELEMENTS for _ in elements]
    for pairs in found.values():
        places, picked = zip(*pairs)
        for place, row in zip(places, torch.stack(picked).cpu().tolist()):
            rows[place] = row
    return [value for row in rows for value in row]


HANDLERS = {"init_device": (None, _device_ends)}
