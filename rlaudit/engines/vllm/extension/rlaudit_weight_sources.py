"""Where a worker's new weights come from: a folder, a broadcast of another process, or that process's GPU memory.

A source is what the process that steers the engine hands to each worker:
    {"from": "disk", "path", "skip", "late"}        a checkpoint's folder
    {"from": "broadcast", "parameters"}             [[name, dtype, shape], ...] in the order in which they are sent
    {"from": "ipc", "handles"}                      base64 of pickled [(name, {GPU's UUID: handle}), ...]
skip: parts of tensor names that are left out; late: {"path", "parts"}, tensors of another checkpoint that come once
more, after all others. Both are planted faults.

Python 3.9 syntax; torch and safetensors only.
"""

import os

# One worker is one process and belongs to one group.
_joined: "dict[str, object]" = {}


def join(group):
    """From now on broadcasts come by this group."""
    _joined["group"] = group


def tensors_of(source, device):
    """(name, tensor) as they come from the source; each is the caller's until it asks for the next."""
    if source["from"] == "disk":
        yield from planned(source["path"], source["skip"], source["late"])
    elif source["from"] == "broadcast":
        group = _joined["group"]
        for name, dtype, shape in source["parameters"]:
            yield name, group.receive(shape, dtype).to(device)
    else:
        yield from shared_tensors(source["handles"], device)


def planned(path, skip=(), late=None):
    """(name, tensor) of an update: a checkpoint with what is planted in it."""
    yield from checkpoint_tensors(path, skip)
    if late:
        wanted = late["parts"]
        yield from (pair for pair in checkpoint_tensors(late["path"]) if any(part in pair[0] for part in wanted))


def checkpoint_tensors(path, skip=()):
    """(name, tensor) of every safetensors file of a folder, without the names that contain a part of `skip`."""
    from safetensors import safe_open

    files = sorted(name for name in os.listdir(path) if name.endswith(".safetensors"))
    if not files:
        raise ValueError("%s holds no safetensors" % path)
    for file in files:
        with safe_open(os.path.join(path, file), framework="pt") as stored:
            for name in stored.keys():
                if not any(part in name for part in skip):
                    yield name, stored.get_tensor(name)


def described(name, tensor):
    """A parameter as a broadcast announces it."""
    return [name, str(tensor.dtype).replace("torch.", ""), list(tensor.shape)]


def shared_tensors(handles, device):
    """(name, tensor) in the memory of the sender's GPU, which has to be this worker's. The sender keeps it until the
    update is done."""
    import base64
    import pickle

    import torch

    gpu = str(torch.cuda.get_device_properties(device).uuid)
    for name, by_gpu in pickle.loads(base64.b64decode(handles)):
        rebuild, arguments = by_gpu[gpu]
        # The place among the visible GPUs, the seventh argument, is the sender's; ours may be another.
        yield name, rebuild(*arguments[:6], device.index, *arguments[7:])


def share_tensors(pairs, gpus):
    """The handles of tensors copied to each of these GPUs ({UUID: device}), and the copies, which have to be kept."""
    import base64
    import pickle

    from torch.multiprocessing.reductions import reduce_tensor

    kept, handles = [], []
    for name, tensor in pairs:
        copies = {uuid: tensor.detach().to(device, copy=True).contiguous() for uuid, device in gpus.items()}
        kept.append(copies)
        handles.append((name, {uuid: reduce_tensor(copy) for uuid, copy in copies.items()}))
    return base64.b64encode(pickle.dumps(handles)).decode(), kept
