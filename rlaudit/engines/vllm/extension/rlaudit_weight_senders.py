"""The end that sends weights to an engine's workers: loaded by a trainer, and by the sender of an audit of updates.

Its `device` and `port` are sent to the workers, which it meets once. For every update it returns the source that the
workers get (rlaudit_weight_sources.py), and then sends the tensors. Pairs are (name, tensor).

Python 3.9 syntax; torch only.
"""

from rlaudit_broadcast import Group, open_store
from rlaudit_weight_sources import described


def own_device(workers):
    """Return the first GPU without a worker, else the first GPU, else the CPU."""
    import torch

    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", workers if workers < torch.cuda.device_count() else 0)


class Broadcasts:
    """Sends tensors one by one over a group (rlaudit_broadcast.py)."""

    def __init__(self, device, seconds):
        self.store, self.seconds, self.device = open_store(seconds), seconds, device
        self.port = self.store.port

    def meet(self, answer):
        """Wait for the workers."""
        self.group = Group(answer["backend"], self.store, 0, answer["size"], self.device, self.seconds)

    def source(self, pairs):
        """Return the source: the description of the tensors, without keeping them."""
        return {"from": "broadcast", "parameters": [described(name, tensor) for name, tensor in pairs]}

    def send(self, pairs):
        """Send the tensors one after the other; return how many."""
        count = 0
        for _, tensor in pairs:
            self.group.send(tensor)
            count += 1
        return count
