"""What YAML cannot say of rLLM: keys that it mirrors into verl's config."""

from collections.abc import Iterator
from dataclasses import replace

from rlaudit.configs.dialects.front_ends import trees_of
from rlaudit.configs.dialects.spec import Spec, shipped, spec_at
from rlaudit.configs.dialects.tree import Tree
from rlaudit.configs.draft import is_said
from rlaudit.configs.merging import merged, nested, reread
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node

# rllm's key -> verl's key
_MIRRORED = {
    "rllm.algorithm.rollout_correction.bypass_mode": "algorithm.rollout_correction.bypass_mode",
    "rllm.algorithm.rollout_correction.tis_mode": "algorithm.rollout_correction.rollout_is",
    "rllm.algorithm.rollout_correction.tis_cap": "algorithm.rollout_correction.rollout_is_threshold",
    "rllm.rollout.n": "actor_rollout_ref.rollout.n",
    "rllm.rollout.train.temperature": "actor_rollout_ref.rollout.temperature",
    "rllm.rollout.train.top_p": "actor_rollout_ref.rollout.top_p",
    "rllm.rollout.train.top_k": "actor_rollout_ref.rollout.top_k",
    "rllm.rollout.train.max_tokens": "actor_rollout_ref.rollout.response_length",
}


def mirrored(source: Source, spec: Spec) -> Iterator[Tree]:
    """Return verl's trees of a file that sets rllm's keys, with these at verl's places."""
    trees = tuple(trees_of(source, spec_at(shipped()["verl"])))
    if any(tree.own.get("rllm") is not None for tree in trees):
        for tree in trees:
            root = _mirrored(tree.root)
            # verl's key of a command line wins over rllm's of the YAML.
            yield replace(tree, root=root if tree.command is None else reread(merged(root, _mirrored(tree.own))))


def _mirrored(root: Node) -> Node:
    """Return the tree with rllm's keys at verl's places; a null says nothing."""
    for rllm_key, verl_key in _MIRRORED.items():
        node = root.get(*rllm_key.split("."))
        if is_said(node):
            root = merged(root, nested(tuple(verl_key.split(".")), node))
    asynchronous = root.get("rllm", "async_training", "enable")
    partial = root.get("rllm", "async_training", "partial_rollout")
    if asynchronous is None or asynchronous.value is not True:
        return Node({key: node for key, node in root.items() if key != "async_training"}, root.place, root.key)
    return root if partial is None else merged(root, nested(("async_training", "partial_rollout"), partial))
