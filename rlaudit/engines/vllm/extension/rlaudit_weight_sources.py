"""Where a worker's new weights come from: a folder, or a broadcast from another process.

The process that steers the engine passes a source to each worker:
    {"from": "disk", "path", "skip"}                a checkpoint's folder
    {"from": "broadcast", "parameters"}             [[name, dtype, shape], ...] in the order in which they are sent
skip: tensors whose names contain one of these are left out, as a planted fault.

Python 3.9 syntax; torch and safetensors only.
"""

import os
from collections.abc import Mapping

# One worker is one process and belongs to one group.
_joined: "dict[str, object]" = {}


def join(group):
    """Receive broadcasts from this group from now on."""
    _joined["group"] = group


def tensors_of(source, device):
    """Yield (name, tensor) from the source. Loaders may keep tensors for a while, so no buffer is reused."""
    if source["from"] == "disk":
        yield from checkpoint_tensors(source["path"], source["skip"])
    else:
        group = _joined["group"]
        for name, dtype, shape in source["parameters"]:
            yield name, group.receive(shape, dtype).to(device)


def checkpoint_tensors(path, skip=()):
    """Yield (name, tensor) of a folder's safetensors files, without names that contain one of `skip`."""
    tensors = Checkpoint(path)
    yield from ((name, tensors[name]) for name in tensors if not any(part in name for part in skip))


class Checkpoint(Mapping[str, object]):
    """The tensors of a folder's safetensors files by name, each read on access."""

    def __init__(self, path):
        from safetensors import safe_open

        files = sorted(name for name in os.listdir(path) if name.endswith(".safetensors"))
        if not files:
            raise ValueError("%s holds no safetensors" % path)
        stored = [safe_open(os.path.join(path, file), framework="pt") for file in files]
        self.files = {name: file for file in stored for name in file.keys()}

    def __getitem__(self, name):
        return self.files[name].get_tensor(name)

    def __iter__(self):
        return iter(self.files)

    def __len__(self):
        return len(self.files)


def described(name, tensor):
    """Return a parameter as a broadcast announces it."""
    return [name, str(tensor.dtype).replace("torch.", ""), list(tensor.shape)]
