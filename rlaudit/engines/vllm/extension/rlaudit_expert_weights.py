"""Finds the version of the weights of fused experts.

A fused layer keeps the gate and up projections of all experts in one parameter (w13) and their down projections in
another (w2). Their order depends on the kernel: halves swapped, rows in blocks, columns packed for a CPU. So an expert
is recognised by two numbers that do not depend on the order of its elements: the sum of its bits and that of their
squares. The sums of parts add up, so the versions of gate and up are found, too.

Not covered: a layout that rounds (quantised experts), and elements in a wrong place; scores show those.
Python 3.9 syntax, torch only.
"""

import itertools
import re

# Sums of 64-bit numbers wrap around.
MODULUS = 2**64
# The names of gate, up and down in checkpoints: of Mixtral and similar models, and of nearly all others.
WORDS = (("w1", "w3", "w2"), ("gate_proj", "up_proj", "down_proj"))


def expert_tensors(name, names):
    """Return for each expert the checkpoint's names of the tensors in this parameter; None for other parameters."""
    fused = re.match(r"(.+\.experts)\.(?:.+\.)?(w13|w2)_weight$", name)
    if fused is None:
        return None
    prefix, which = fused.groups()
    for gate, up, down in WORDS:
        parts = [gate, up] if which == "w13" else [down]
        experts = []
        for number in itertools.count():
            of_expert = ["%s.%d.%s.weight" % (prefix, number, part) for part in parts]
            if not all(tensor in names for tensor in of_expert):
                break
            experts.append(of_expert)
        if experts:
            return experts
    return None


def versions_held(parameter, experts, checkpoints):
    """Return {tensor's name: version, or None if it is of none}. checkpoints: tensors by name, for each version."""
    versions = {}
    for slab, names in zip(parameter, experts):
        marks_of_versions = [[marks(tensors[name].to(slab.dtype)) for tensors in checkpoints] for name in names]
        versions.update(zip(names, first_sum(marks(slab), marks_of_versions) or [None] * len(names)))
    return versions


def first_sum(whole, marks_of_versions):
    """Return the version of each part with which the parts add up to the whole; None if there is none.

    marks_of_versions: for each part, by version. Choices of few different versions are tried first.
    """
    choices = itertools.product(*(range(len(of_part)) for of_part in marks_of_versions))
    for choice in sorted(choices, key=lambda choice: len(set(choice))):
        parts = [of_part[version] for version, of_part in zip(choice, marks_of_versions)]
        if tuple(sum(mark) % MODULUS for mark in zip(*parts)) == whole:
            return list(choice)
    return None


def marks(tensor):
    """Return two numbers that do not depend on the order of elements, nor on zeros between them."""
    import torch

    whole_numbers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    bits = tensor.detach().cpu().contiguous().view(whole_numbers).to(torch.int64)
    low, high = bits % 2**20, bits // 2**20
    return int(bits.sum()) % MODULUS, int((low * low + high).sum()) % MODULUS
