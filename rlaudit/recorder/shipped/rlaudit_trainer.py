"""The trainer's logprobs of recorded completions, read off what the trainer computes anyway.

Every framework has one function that makes its loss's logprobs of logits and token ids. It is wrapped by name: no
forward pass is added, no gradient touched. Old, current and reference logprobs come from that one function; gradients
and the model that was called tell them apart, which is for the reader of a recording to do.

A trainer may share a process with the engine's front end, or have one of its own: then what the others have sampled is
read from their files, as far as these lie in the same folder.
Not covered: a function inside what torch.compile traces, and logprobs that are spread over ranks. Standard library and
Python 3.9, beside the torch that the trainer has imported.
"""

import base64
import functools
import json
import os
import sys
from array import array

import rlaudit_recorder as recorder

# One line a trainer, `module:function` or `module:Class.method`. It takes token ids and returns logprobs of the last
# ones, alone or before other values. TRL: the same names in 0.23.1 to 1.16.0; its `selective_log_softmax` is not called
# any more from 1.15.0 on.
FUNCTIONS = (
    "trl.trainer.grpo_trainer:GRPOTrainer._get_per_token_logps_and_entropies",
    "trl.trainer.rloo_trainer:RLOOTrainer._get_per_token_logps_and_entropies",
)


def watch(watched, more):
    """Have these functions, and more of a user's own, hooked when their modules are imported."""
    for target in (*FUNCTIONS, *more):
        watched.setdefault(target.partition(":")[0], {})[target] = _hook


def _hook(module, target):
    """Put a recorder around a trainer's function, under every name by which it was imported."""
    *way, name = target.partition(":")[2].split(".")
    owner = functools.reduce(getattr, way, module)
    function = getattr(owner, name)

    @functools.wraps(function)
    def recorded(*args, **kwargs):
        result = function(*args, **kwargs)
        if not _is_compiling():
            recorder.quietly(target, _scored, target, (*args, *kwargs.values()), result)
        return result

    setattr(owner, name, recorded)
    for other in list(sys.modules.values()):
        names = getattr(other, "__dict__", None)
        if isinstance(names, dict) and names.get(name) is function:
            setattr(other, name, recorded)
    recorder.note_hook(target)


def _is_compiling():
    # Not before the first call: a module may be imported before the torch that it uses.
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    return hasattr(compiler, "is_compiling") and compiler.is_compiling()


def _scored(target, arguments, result):
    """Write the rows of a trainer's logprobs that begin like a recorded completion."""
    process, torch = recorder._process, sys.modules["torch"]
    result = result[0] if isinstance(result, tuple) else result
    if not result.numel() or not (process.beginnings or _is_apart(process)):
        return
    if type(result).__name__ == "DTensor":  # to gather it would be a collective of our own
        recorder.drop("trainer logprobs", "they are spread over ranks (DTensor)")
        return
    if result.is_cuda and torch.cuda.is_current_stream_capturing():
        recorder.drop("trainer logprobs", "they are computed in a CUDA graph")
        return
    ids, tokens = _scored_ids(arguments, result), result.shape[-1]
    if ids is None or recorder.is_full(process):
        return
    ids_RT, logprobs_RT = ids.detach().reshape(-1, tokens), result.detach().reshape(-1, tokens)
    # Of a front end elsewhere the last sequences may not be written yet: at first everything is kept, as it is there.
    takes_all = _is_apart(process) and process.bytes < recorder.KEPT_BYTES
    if _is_apart(process) and not takes_all:
        _read_others(process)
    rows = [row for row, first in enumerate(ids_RT[:, :4].tolist()) if takes_all or _is_recorded(process, first)]
    if not rows:
        return
    picked = torch.tensor(rows, device=ids_RT.device)
    recorder.put(
        "trainer",
        call=process.number("trainer"),
        function=target,
        gradients=bool(result.requires_grad),
        backward=torch._C._current_graph_task_id() != -1,
        model=_called_model(process, arguments),
        shape=[len(rows), tokens],
        rows=rows,
        ids=recorder.Numbers(ids_RT[picked].flatten().tolist()),
        logprobs=recorder.Numbers(logprobs_RT[picked].float().flatten().tolist(), "f"),
    )


def _scored_ids(arguments, result):
    """Return the ids whose logprobs these are: the last ones of the first whole numbers in as many rows."""
    is_tensor = sys.modules["torch"].is_tensor
    for value in arguments:
        if is_tensor(value) and value.dim() and not (value.is_floating_point() or value.dtype.is_complex):
            if value.shape[:-1] == result.shape[:-1] and value.shape[-1] >= result.shape[-1]:
                return value[..., -result.shape[-1] :]
    return None


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
            if line.startswith(b'{"kind":"sequence"'):
                ids = array("i")
                ids.frombytes(base64.b64decode(json.loads(line)["ids"])[:16])
                recorder.remember(process, ids)


def _is_recorded(process, first):
    """Return whether a kept sequence begins with these ids. One of less than four goes on with padding."""
    redaction = recorder._redaction
    # What was sampled elsewhere was read from files, in which ids are hashed.
    known = [first] if redaction is None else [first, redaction.beginnings(first)]
    return any(tuple(ids[:length]) in process.beginnings for ids in known for length in (4, 3, 2, 1))


def _called_model(process, arguments):
    """Return what is known of the model that was called; None if no argument and no caller's `model` is one."""
    model = next((value for value in arguments if hasattr(value, "named_parameters")), None)
    frame = sys._getframe(1)
    while model is None and frame is not None:
        held = frame.f_locals.get("model")
        model, frame = (held if hasattr(held, "named_parameters") else None), frame.f_back
    if model is None:
        return None
    if id(model) not in process.trainer_models:
        layers = (layer for layer in model.modules() if isinstance(getattr(layer, "disable_adapters", None), bool))
        process.trainer_models[id(model)] = (len(process.trainer_models) + 1, next(layers, None))
    number, layer = process.trainer_models[id(model)]
    return {
        "number": number,
        "class": recorder.name_of(model),
        "dtype": str(next(model.parameters()).dtype),
        "trainable": any(parameter.requires_grad for parameter in model.parameters()),
        "adapters": None if layer is None else not layer.disable_adapters,
    }
