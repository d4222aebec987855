"""A framework's own function on a row of all sequences. Runs in an interpreter that has torch, below the recorder.

framework_function.py PACKAGES TARGET COMPLETIONS [STAND-IN ...]

PACKAGES: the folder with the framework. Its packages are stood in for, so that only the function's own module is run
with what that imports; so is what is missing there and the function does not use. Prints the logprobs as they are
computed by hand, of each id of the row but the first.
"""

import functools
import importlib.machinery
import json
import os
import sys
import tempfile
import types
from pathlib import Path

import torch
from trainer_layouts import VOCABULARY


class _Named(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything


class Anything(metaclass=_Named):
    """What is imported, and not used. As a decorator it changes nothing."""

    def __init__(self, *_, **__):
        pass

    def __call__(self, decorated=None, *_, **__):
        return decorated

    def __class_getitem__(cls, key):
        return cls


class StandIn(types.ModuleType):
    """A package of anything. Its modules are those of a folder, or more of the same."""

    def __init__(self, name, folder=None):
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None)
        self.__path__ = [] if folder is None else [str(folder)]

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if any(Path(folder, f"{name}.py").exists() for folder in self.__path__):
            return importlib.import_module(f"{self.__name__}.{name}")
        return False if name.startswith("is_") else _Named(name, (Anything,), {})


def imported(packages, target, stand_ins):
    """Return the function."""
    module, _, name = target.partition(":")
    for whole in (*stand_ins, module):
        *parents, last = whole.split(".")
        for count in range(1, len(parents) + 1):
            held = ".".join(parents[:count])
            sys.modules.setdefault(held, StandIn(held, Path(packages, *parents[:count])))
        if whole != module:
            sys.modules[whole] = StandIn(whole)
            if parents:
                setattr(sys.modules[".".join(parents)], last, sys.modules[whole])
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))


def alone():
    """Return the group of this process alone."""
    if not torch.distributed.is_initialized():
        place = tempfile.mkdtemp()
        torch.distributed.init_process_group("gloo", init_method=f"file://{place}/store", rank=0, world_size=1)
    return torch.distributed.group.WORLD


def called(function, target, model, ids):
    """Return what the function makes of ids (1, N)."""
    module, embedded, head = sys.modules[target.partition(":")[0]], model[0](ids), model[1].weight
    logits, labels, ones = embedded @ head.T, ids.roll(-1, 1), torch.ones_like(ids)
    calls = {
        "FusedLinearForPPO.forward": lambda: module.FusedLinearForPPO().forward(
            embedded, head, labels, temperature=1.0
        ),
        "FusedOutputLinear.forward": lambda: fused(module.FusedOutputLinear, head)(embedded, labels, ones.float()),
        "from_parallel_logits_to_logprobs": lambda: function(logits, ids, 0, VOCABULARY, alone()),
        "get_next_token_logprobs_from_logits": lambda: function(
            input_ids=ids, next_token_logits=logits, vocab_parallel_rank=0, vocab_parallel_group=alone()
        ),
        "forward_for_logprobs": lambda: function(WithLogits(model), ids, None, None, 0, 1.0),
        "InferenceStrategy.op_compute_log_probs": lambda: function(None, logits, ids, ones),
    }
    return calls.get(target.rpartition(":")[2], lambda: function(logits, labels))()


def fused(head_class, head):
    module = head_class(head.shape[1], head.shape[0], 16)
    module.weight = head
    return module


class WithLogits(torch.nn.Module):
    """A model that is called as one of transformers' is."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, **_):
        return types.SimpleNamespace(logits=self.model(input_ids))


def main():
    packages, target, completions, *stand_ins = sys.argv[1:]
    function = imported(packages, target, stand_ins)
    sequences = json.loads(Path(completions).read_text())
    ids = torch.tensor([[token for prompt, tokens in sequences for token in prompt + tokens]])
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(VOCABULARY, 8), torch.nn.Linear(8, VOCABULARY, bias=False))
    with torch.no_grad():
        by_hand = torch.log_softmax(model(ids)[0, :-1], -1).gather(-1, ids[0, 1:, None]).squeeze(-1)
    if "RLAUDIT_RECORD" in os.environ:
        import rlaudit_recorder as recorder

        recorder.KEPT_BYTES = 1 << 20
        recorder._begin_file(recorder._process)
        recorder._process.bytes = 1 << 20
    called(function, target, model, ids)
    print(json.dumps(by_hand.tolist()))


if __name__ == "__main__":
    main()
