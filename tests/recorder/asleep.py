"""A worker whose weights are unmapped while it sleeps: a read of them ends the process.

asleep.py [torch]    with real tensors over pages that sleep takes away; else with a stand-in that aborts

The recorder is on PYTHONPATH. It prints how many steps were taken.
"""

import os
import sys
from types import ModuleType, SimpleNamespace

IS_REAL = sys.argv[1:] == ["torch"]


class Pages:
    """The memory of one tensor of 4096 float32."""

    def __init__(self):
        if IS_REAL:
            import mmap

            import torch

            self.memory = mmap.mmap(-1, 4 * 4096)
            self.tensor = torch.frombuffer(self.memory, dtype=torch.float32).view(64, 64)
        else:
            self.tensor = StandIn(self)
        self.mapped = True

    def protect(self, allowed):
        self.mapped = bool(allowed)
        if IS_REAL:
            import ctypes

            address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
            assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), 4 * 4096, allowed) == 0


class Device:
    type = "cpu"


class StandIn:
    """A tensor without numbers but one, which all elements have."""

    shape, dtype, device = (64, 64), "torch.float32", Device()

    def __init__(self, pages):
        self.pages, self.value = pages, 0.0

    def numel(self):
        return 4096

    def fill_(self, value):
        self.value = value

    @property
    def data(self):
        if not self.pages.mapped:
            os.abort()
        return self


def torch_of_stand_ins():
    """What the recorder asks of torch, for elements of stand-ins."""
    torch = ModuleType("torch")
    torch.cuda = SimpleNamespace(is_available=lambda: False)
    torch.float32 = "torch.float32"
    torch.tensor = lambda values, device=None: values

    def take(tensor, places):
        return SimpleNamespace(device="cpu", dtype=tensor.dtype, values=[tensor.value] * len(places))

    def stack(picked):
        rows = SimpleNamespace(tolist=lambda: [one.values for one in picked])
        return SimpleNamespace(cpu=lambda: SimpleNamespace(float=lambda: rows))

    torch.take, torch.stack = take, stack
    return torch


class Model:
    def __init__(self):
        self.pages = [Pages(), Pages()]

    def named_parameters(self, remove_duplicate=True):
        return [(f"layers.{number}.weight", pages.tensor) for number, pages in enumerate(self.pages)]

    def parameters(self):
        return [tensor for _, tensor in self.named_parameters()]

    def load_weights(self, weights):
        for _ in weights:
            pass


class Worker:
    rank, device = 0, Device()

    def load_model(self):
        self.model_runner = SimpleNamespace(model=Model())

    def sleep(self, level=1):
        for pages in self.model_runner.model.pages:
            pages.protect(0)

    def wake_up(self, tags=None):
        if tags is None or "weights" in tags:
            for pages in self.model_runner.model.pages:
                pages.protect(3)

    def update_config(self, overrides):
        return None

    def execute_model(self, scheduler_output):
        print("step", flush=True)


def main():
    if not IS_REAL:
        sys.modules["torch"] = torch_of_stand_ins()
    import rlaudit_recorder
    import rlaudit_weights

    rlaudit_recorder.register()
    rlaudit_weights.IDLE_SECONDS = -1.0  # as if a minute had passed at each moment
    worker = Worker()
    wrapper = SimpleNamespace(worker=worker)
    owner = type("WorkerWrapperBase", (), {"init_device": lambda self: None, "worker": worker})
    rlaudit_recorder.wrap(owner, "init_device", "init_device", *rlaudit_weights.HANDLERS["init_device"])
    assert wrapper.worker is worker
    owner().init_device()
    worker.load_model()
    full, empty = SimpleNamespace(total_num_scheduled_tokens=8), SimpleNamespace(total_num_scheduled_tokens=0)
    worker.execute_model(full)
    for value in (1.0, 2.0):
        worker.sleep(2)
        worker.execute_model(empty)  # of an engine that is paused
        worker.execute_model(full)
        worker.update_config({})
        worker.wake_up(["kv_cache"])
        worker.execute_model(full)
        worker.wake_up(tags=["weights"])
        for tensor in worker.model_runner.model.parameters():
            tensor.fill_(value)
        worker.execute_model(full)
    print("awake", flush=True)


if __name__ == "__main__":
    main()
