"""Which arguments of a recording an experiment takes over: a recording is data, and may come from a stranger.

An argument or a variable is taken over if its value is a number, a switch or a plain word, at any depth. A word
with a dot, a slash or a colon may name a module to import, a file to read or an address to fetch from; some arguments
run code or load a checkpoint with any value. These are left out, each by name, unless the command line repeats the
name.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Arguments that run code, or load a checkpoint or a file beside the model's.
RUNS_OR_LOADS = frozenset(
    {
        "trust_remote_code", "worker_cls", "worker_extension_cls", "logits_processors", "scheduler_cls",
        "io_processor_plugin", "tool_parser_plugin", "reasoning_parser_plugin", "reasoning_parser", "middleware",
        "speculative_config", "speculative_model", "kv_transfer_config", "ec_transfer_config", "kv_events_config",
        "model_loader_extra_config", "additional_config", "model_class_overrides", "lora_modules", "load_format",
        "hf_config_path", "code_revision", "tokenizer_revision", "download_dir", "chat_template",
        "allowed_local_media_path", "quantization_param_path", "profiler_config",
    }
)  # fmt: skip
# Variables that load code into a process, or send it elsewhere.
VARIABLES = re.compile(r"VLLM_PLUGINS$|VLLM_.*(PATH|DIR|ROOT|URL|SERVER|KEY|TOKEN|CACHE$|SOURCE|HOST|LIB)|LD_|PYTHON")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_+-]{0,60}")
_NAMES_A_CHECKPOINT = frozenset({"model", "tokenizer", "auto_map", "path"})


@dataclass(frozen=True)
class Taken:
    """The arguments or variables that are taken over."""

    values: Mapping[str, Any]
    # Sentences about the others.
    left_out: tuple[str, ...]


def loads_code(variable: str) -> bool:
    """Return whether a variable loads code into a process, or sends it elsewhere."""
    return VARIABLES.match(variable) is not None


def taken_over(values: Mapping[str, Any], repeated: Collection[str]) -> Taken:
    """Split a recording's arguments or variables. repeated: names that are taken over in any case."""
    kept, left_out = {}, []
    for name, value in values.items():
        refused = loads_code(name) or (name in RUNS_OR_LOADS and value not in (None, False)) or not _is_plain(value)
        if refused and name not in repeated:
            left_out.append(f"{name}={value}: left out, as a recording may be a stranger's (--take-over {name})")
        else:
            kept[name] = value
    return Taken(kept, tuple(left_out))


def _is_plain(value: Any) -> bool:
    words = (leaf for leaf in _leaves(value) if isinstance(leaf, str))
    return all(_PLAIN_WORD.fullmatch(word) is not None or _is_number(word) for word in words)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the keys and items of a value at any depth; for a key that names a checkpoint, a word that is not plain."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield "./" if key in _NAMES_A_CHECKPOINT and item is not None else str(key)
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value
