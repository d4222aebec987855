"""Reads back which version the weights of fused experts are of.

A fused layer keeps the gate and up projections of all experts in one parameter (w13) and their down projections in
another (w2). What order it keeps them in is the kernel's: halves swapped, rows in blocks, columns packed for a CPU. So
an expert is known by what does not change when its elements change places: the sum of its bits and that of their
squares. Sums add up, so it is known as well which of gate and up is old.

Not covered: a layout that rounds (quantised experts), and elements that went to a wrong place; scores show those.
Python 3.9 syntax, torch only.
"""

import itertools
import re

# Sums of 64-bit numbers wrap around.
MODULUS = 2**64
# Gate, up, down: names in checkpoints of Mixtral and its like, and of nearly all others.
WORDS = (("w1", "w3", "w2"), ("gate_proj", "up_proj", "down_proj"))


def expert_tensors(name, names):
    """Return for each expert the checkpoint's names of what this parameter holds of it; None for other parameters."""
    fused = re.match(r"(.+\.experts)\.(?:.+\.)?(w13|w2)_weight$", name)
    if fused is None:
        return None
    prefix, which = fused.groups()
    for gate, up, down in WORDS:
        parts = [gate, up] if which == "w13" else [down]
        experts = []
        for number in itertools.count():
            held = ["%s.%d.%s.weight" % (prefix, number, part) for part in parts]
            if not all(one in names for one in held):
                break
            experts.append(held)
        if experts:
            return experts
    return None


def versions_held(parameter, experts, checkpoints):
    """Return {tensor's name: version, or None if it is of none}. checkpoints: tensors by name, for each version."""
    found = {}
    for slab, names in zip(parameter, experts):
        whole = marks(slab)
        known = [[marks(tensors[name].to(slab.dtype)) for tensors in checkpoints] for name in names]
        found.update(zip(names, first_sum(whole, known) or [None] * len(names)))
    return found


def first_sum(whole, known):
    """Return for each part the version with which the parts add up to the whole; the most alike are tried first."""
    choices = itertools.product(*(range(len(versions)) for versions in known))
    for choice in sorted(choices, key=lambda one: len(set(one))):
        parts = [versions[version] for version, versions in zip(choice, known)]
        if tuple(sum(one) % MODULUS for one in zip(*parts)) == whole:
            return list(choice)
    return None


def marks(tensor):
    """Return two numbers that stay the same when elements change places, and when zeros are put in between."""
    import torch

    whole_numbers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    bits = tensor.detach().cpu().contiguous().view(whole_numbers).to(torch.int64)
    low, high = bits % 2**20, bits // 2**20
    return int(bits.sum()) % MODULUS, int((low * low + high).sum()) % MODULUS
