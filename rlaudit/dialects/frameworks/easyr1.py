"""What YAML cannot say of EasyR1: `config=FILE` on a command, and a class whose fields are all that it takes."""

import re
from collections.abc import Iterator
from typing import Any

from rlaudit.configs.hydra_dotlist import overridden
from rlaudit.configs.mapping_writer import dotlist_writer, one_mapping, plain_spelling, prefixed
from rlaudit.configs.merging import mapping_of, merged, nested, reread
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, entries
from rlaudit.configs.syntax.spelling import Write
from rlaudit.dialects.reading import Reading
from rlaudit.dialects.spec import Spec
from rlaudit.dialects.tree import Tree
from rlaudit.settings.rollout_config import Loss

_PROGRAM = "verl.trainer.main"
_CONFIG = "verl/workers/rollout/config.py"
_ARGUMENTS = {
    "seed", "gpu_memory_utilization", "enforce_eager", "enable_chunked_prefill", "tensor_parallel_size",
    "max_num_batched_tokens", "disable_log_stats",
}  # fmt: skip
# Fields of RolloutConfig, those of older copies included.
_FIELDS = _ARGUMENTS | {
    "temperature", "top_p", "top_k", "name", "n", "limit_images", "dtype", "ignore_eos", "max_model_len",
    "disable_tqdm", "val_override_config", "trust_remote_code", "prompt_length", "response_length", "do_sample",
    "free_cache_engine", "max_num_seqs",
}  # fmt: skip


def of_the_program(source: Source, spec: Spec) -> Iterator[Tree]:
    """Return the file's own config, or that of each command that runs EasyR1's program (verl's has another name)."""
    written = mapping_of(source)
    rollout = written.get("worker", "rollout") if written is not None else None
    if written is not None and rollout is not None and written.get("worker", "actor") is not None:
        yield Tree(written, written)
        return
    for override in overridden(source, "worker."):
        if any(word.value == _PROGRAM for word in override.command.words):
            named = override.root.get("config")
            name = named.value if named is not None and isinstance(named.value, str) else None
            base = source.above(name) if name is not None else None
            behind = mapping_of(base) if base is not None else None
            whole = override.root if behind is None else reread(merged(behind, override.root))
            root = merged(nested(("worker", "rollout"), Node({}, override.command.place)), whole)
            missing = () if behind is not None else (name or "the config that the command starts from",)
            parts = (base.path,) if base is not None and behind is not None else ()
            yield Tree(root, override.root, override.command, parts=parts, missing=missing)


def refused(reading: Reading) -> None:
    """Keep as lost the keys that stop the start: fields that RolloutConfig does not have."""
    fields = _fields(reading)
    for key, node in entries(reading.section):
        if key not in fields:
            reason = "EasyR1 stops: its RolloutConfig has no such field (config.py)"
            reading.draft.lose(key, node, Loss.REFUSED, reason)


def fields_of_the_copy(reading: Reading) -> Write:
    """Return a writer of the arguments for which RolloutConfig has a field."""
    command, fields = reading.tree.command, _fields(reading)
    rollout = reading.tree.own.get("worker", "rollout")
    mapping = one_mapping(rollout, plain_spelling, reading.source.text)
    write = mapping if command is None else dotlist_writer(command, prefixed("worker.rollout."), reading.source)

    def write_field(name: str, value: Any) -> Any:
        return write(name, value) if name in _ARGUMENTS and name in fields else None

    return write_field


def _fields(reading: Reading) -> frozenset[str]:
    """Return the fields of RolloutConfig in the copy around the config, without one those of any release."""
    checkout = reading.code.checkout
    copy = checkout.file(_CONFIG) if checkout is not None else None
    match = re.search(r"class RolloutConfig\b.*?(?=\nclass |\n@|\Z)", copy.text, re.S) if copy is not None else None
    return frozenset(re.findall(r"^    (\w+):", match[0], re.M)) if match is not None else frozenset(_FIELDS)
