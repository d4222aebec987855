"""The trainer's logprobs of recorded completions, read off what the trainer computes anyway.

Every framework has one function that makes its loss's logprobs of logits and token ids. It is wrapped by name: no
forward pass is added, no gradient touched, no other rank waited for. Which ids the logprobs are of is all that is known
of a layout: recorded completions are looked for in these ids, wherever they lie. That serves rows with a prompt before
and padding behind them as well as one long row of all sequences.

Old, current and reference logprobs come from that one function. Gradients, the model that was called and the method of
the framework that asked for them tell them apart; the reader of a recording does that. A model is known if it
is an argument. The locals of callers are not looked at: before Python 3.13 that keeps alive what they hold (the logits
of one step through the next), and changes the dict that `locals()` has given to a program.

A trainer may share a process with the engine's front end, or have one of its own: then what the others have sampled is
read from their files, as far as these lie in the same folder.
Not covered: a function inside what torch.compile traces, logprobs that are DTensors, and completions of which a rank
holds only a part. Standard library and Python 3.9, beside the torch that the trainer has imported.
"""

import base64
import functools
import inspect
import json
import os
import sys
from array import array

import rlaudit_completions as completions
import rlaudit_recorder as recorder
from rlaudit_frameworks import ASKED_FOR, FUNCTIONS, LOGPROBS, MODULES


def watch(watched, extra):
    """Have the known functions, and extra ones of the user's, hooked when their modules are imported."""
    for target in (*FUNCTIONS, *extra):
        watched.setdefault(target.partition(":")[0], {})[target] = _hook
    for module in MODULES:
        watched.setdefault(module, {})[module] = _note_framework


def _note_framework(module, target):
    """Note that a framework's module was imported."""
    recorder.note_hook(target)


def _hook(module, target):
    """Put a recorder around a trainer's function, under every name by which it was imported."""
    *way, name = target.partition(":")[2].split(".")
    owner = functools.reduce(lambda outer, part: getattr(outer, part, None), way, module)
    function = getattr(owner, name, None)
    if function is None and target in FUNCTIONS:  # another release
        return
    if getattr(function, "_rlaudit", False):  # another name of one that is hooked
        return
    ids = _place(function, FUNCTIONS[target][0]) if target in FUNCTIONS else None

    @functools.wraps(function)
    def recorded(*args, **kwargs):
        if _is_compiling():
            return function(*args, **kwargs)
        # One of these functions may call another: the logprobs are those of the outer one.
        thread = recorder.this_process().thread
        inside, thread.scoring = getattr(thread, "scoring", False), True
        try:
            result = function(*args, **kwargs)
        finally:
            thread.scoring = inside
        if not inside:
            recorder.quietly(target, _scored, ids, args, kwargs, result)
        return result

    recorded._rlaudit = True
    setattr(owner, name, recorded)
    for other in list(sys.modules.values()):
        names = getattr(other, "__dict__", None)
        if isinstance(names, dict) and names.get(name) is function:
            setattr(other, name, recorded)
    recorder.note_hook(target)


def _place(function, ids):
    """Return place and name of the argument with the ids. ids: its name, or its place if there is no signature."""
    return (ids, None) if isinstance(ids, int) else (list(inspect.signature(function).parameters).index(ids), ids)


def _is_compiling():
    # Not before the first call: a module may be imported before the torch that it uses.
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    return hasattr(compiler, "is_compiling") and compiler.is_compiling()


def _scored(ids, args, kwargs, result):
    """Write the stretches of a trainer's logprobs in which recorded completions may lie."""
    process, torch = recorder.this_process(), sys.modules["torch"]
    if not (process.beginnings or _is_apart(process)):
        return
    result, arguments = _logprobs(result), (*args, *kwargs.values())
    candidates = arguments if ids is None else (kwargs[ids[1]] if ids[1] in kwargs else args[ids[0]],)
    if result is None or not result.numel():
        return
    if "DTensor" in [type(value).__name__ for value in (result, *candidates)]:  # to gather it would be a collective
        recorder.drop("trainer logprobs", "they are spread over ranks (DTensor)")
        return
    if result.is_cuda and torch.cuda.is_current_stream_capturing():
        recorder.drop("trainer logprobs", "they are computed in a CUDA graph")
        return
    scored_ids = _scored_ids(candidates, result)
    if scored_ids is None and ids is not None:
        recorder.drop("trainer logprobs", "the ids that the function was given have another shape")
    if scored_ids is None or recorder.is_full(process):
        return
    tokens = result.shape[-1]
    ids_RT, logprobs_RT = scored_ids.detach().reshape(-1, tokens), result.detach().reshape(-1, tokens)
    # A front end in another process may not have written its last sequences yet: at first everything is kept here too.
    takes_all = _is_apart(process) and process.bytes < recorder.KEPT_BYTES
    if _is_apart(process) and not takes_all:
        _read_others(process)
        if not process.beginnings:  # with nodes that share no folder
            recorder.drop("trainer logprobs", "no completion of another process lies in the same folder")
    if takes_all:
        stretches = [[row, 0, tokens] for row in range(len(ids_RT))]
    else:
        stretches = completions.stretches(process, ids_RT)
    if not stretches:
        return
    rows, begins, ends = zip(*stretches)
    lengths = [end - begin for begin, end in zip(begins, ends)]
    picked = _picked([row * tokens + begin for row, begin in zip(rows, begins)], lengths).to(result.device)
    recorder.put(
        "trainer",
        call=process.number("trainer"),
        gradients=bool(result.requires_grad),
        backward=torch._C._current_graph_task_id() != -1,
        asked_for=_asked_for(sys._getframe(3)),
        model=_called_model(process, arguments),
        rows=rows,
        begins=begins,
        lengths=lengths,
        ids=recorder.Numbers(ids_RT.reshape(-1)[picked].tolist()),
        logprobs=recorder.Numbers(logprobs_RT.reshape(-1)[picked].float().tolist(), "f"),
    )


def _logprobs(result):
    """Return the tensor of logprobs in a result; None if there is none."""
    if isinstance(result, dict):
        result = next((result[name] for name in LOGPROBS if result.get(name) is not None), None)
    result = result[0] if isinstance(result, (tuple, list)) and result else result
    is_tensor = sys.modules["torch"].is_tensor(result)
    return result if is_tensor and result.dim() and result.is_floating_point() and not result.is_nested else None


def _scored_ids(arguments, result):
    """Return the ids whose logprobs these are: of the first whole numbers that fit, the last ones of each row."""
    is_tensor = sys.modules["torch"].is_tensor
    for value in arguments:
        if is_tensor(value) and value.dim() and not (value.is_floating_point() or value.dtype.is_complex):
            if value.shape[:-1] == result.shape[:-1] and value.shape[-1] >= result.shape[-1]:
                return value[..., -result.shape[-1] :]
            if value.numel() == result.numel() and len(arguments) == 1:  # one row of all, with its dimension or not
                return value
    return None


def _picked(starts, lengths):
    """Return the places of all ids of all stretches."""
    torch = sys.modules["torch"]
    starts, lengths = torch.tensor(starts, device="cpu"), torch.tensor(lengths, device="cpu")
    before = lengths.cumsum(0) - lengths
    return torch.arange(int(lengths.sum()), device="cpu") + (starts - before).repeat_interleave(lengths)


def _is_apart(process):
    """Return whether the completions come from other processes: no front end here has had a request."""
    return not process.totals["requests"]


def _read_others(process):
    """Learn how the sequences begin that other processes have written since the last time."""
    with os.scandir(os.path.dirname(process.file)) as entries:
        others = [entry for entry in entries if entry.name.endswith(".jsonl") and entry.path != process.file]
    for entry in others:
        begin = max(process.read_of_others.get(entry.name, 0), entry.stat().st_size - recorder.KEPT_BYTES)
        with open(entry.path, "rb") as file:
            file.seek(begin)
            data = file.read(recorder.KEPT_BYTES)
        process.read_of_others[entry.name] = begin + data.rfind(b"\n") + 1
        for line in data[: data.rfind(b"\n") + 1].splitlines():
            if line.startswith(b'{"kind":"prompt"'):
                record = json.loads(line)
                process.prompts_of_others[record["prompt"]] = _ids_of(record)[-completions.BEHIND :]
                if len(process.prompts_of_others) > recorder.MOST_REMEMBERED:
                    del process.prompts_of_others[next(iter(process.prompts_of_others))]
            elif line.startswith(b'{"kind":"sequence"'):
                record = json.loads(line)
                completions.remember(process, process.prompts_of_others.get(record["prompt"], ()), _ids_of(record))


def _ids_of(record):
    ids = array("i")
    ids.frombytes(base64.b64decode(record["ids"]))
    return ids


def _asked_for(frame):
    """Return what a call was for, "old" or "reference"; None if no method on the stack says it."""
    purpose = None
    while frame is not None and purpose != "reference":
        package, code = str(frame.f_globals.get("__name__")).partition(".")[0], frame.f_code
        for name in (code.co_name, getattr(code, "co_qualname", None)):
            use = ASKED_FOR.get((package, name))
            purpose = use if use == "reference" else purpose or use
        frame = frame.f_back
    return purpose


def _called_model(process, arguments):
    """Return what is known of the model that was called; None if no argument is one with parameters."""
    models = (value for value in arguments if hasattr(value, "named_parameters"))
    model = next((model for model in models if next(model.parameters(), None) is not None), None)
    if model is None:
        return None
    if id(model) not in process.trainer_models:
        layers = (layer for layer in model.modules() if isinstance(getattr(layer, "disable_adapters", None), bool))
        process.trainer_models[id(model)] = (len(process.trainer_models) + 1, next(layers, None), _casts(model))
    number, layer, casts = process.trainer_models[id(model)]
    return {
        "number": number,
        "class": recorder.name_of(model),
        "dtype": str(next(model.parameters()).dtype),
        "trainable": any(parameter.requires_grad for parameter in model.parameters()),
        "adapters": None if layer is None else not layer.disable_adapters,
        "casts": True if sys.modules["torch"].is_autocast_enabled() else casts,
    }


def _casts(model):
    """Return whether a model computes in another dtype than its parameters'; None if that cannot be seen."""
    # accelerate puts autocast around the forward pass, and keeps the one that it hides.
    if any("_original_forward" in vars(layer) for layer in model.modules()):
        return True
    bases = {base for layer in model.modules() for base in type(layer).__mro__}
    is_sharded = any("FSDP" in base.__name__ or "FullySharded" in base.__name__ for base in bases)
    packages = {base.__module__.partition(".")[0] for base in bases}
    return None if is_sharded or packages & {"deepspeed", "megatron", "transformer_engine"} else False
