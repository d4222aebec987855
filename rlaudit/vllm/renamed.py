"""What a newer release calls the same thing: values of arguments, keys of the compilation config, arguments.

A table is read in one direction, from an old word to the newer one. Arguments whose successor takes the same value, or
one that can be translated, are in removed.py, beside the advice for those without.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from rlaudit.unknown import Unknown
from rlaudit.vllm.removed import ADVICE

COMPILATION = "compilation_config"
# Argument -> old value -> new value. builtin was Python's own hash; any other one finds the same prefixes.
VALUES: Mapping[str, Mapping[Any, Any]] = {
    "attention_backend": {
        "FLASH_ATTN_VLLM_V1": "FLASH_ATTN",
        "FLASHINFER_VLLM_V1": "FLASHINFER",
        "TRITON_ATTN_VLLM_V1": "TRITON_ATTN",
    },
    "prefix_caching_hash_algo": {"builtin": "sha256", "sha256_cbor_64bit": "sha256_cbor"},
}
# Old key -> old value as text -> what means the same today; "*" keeps the value under a new name. {} drops the key.
NESTED: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "level": {"*": {"mode": None}},
    "use_cudagraph": {"False": {"cudagraph_mode": "NONE"}, "True": {}},
    "full_cuda_graph": {"True": {"cudagraph_mode": "FULL"}, "False": {}},
    "use_inductor": {"False": {"backend": "eager"}, "True": {"backend": "inductor"}},
    "pass_config.enable_fusion": {"*": {"fuse_norm_quant": None, "fuse_act_quant": None}},
    "pass_config.enable_attn_fusion": {"*": {"fuse_attn_quant": None}},
    "pass_config.enable_noop": {"*": {"eliminate_noops": None}},
    "pass_config.enable_sequence_parallelism": {"*": {"enable_sp": None}},
    "pass_config.enable_async_tp": {"*": {"fuse_gemm_comms": None}},
    "pass_config.enable_fi_allreduce_fusion": {"*": {"fuse_allreduce_rms": None}},
}


def renamed_value(name: str, value: Any) -> Any:
    """Return the newest word for an argument's value."""
    words = VALUES.get(name, {})
    return words.get(value, value) if isinstance(value, str) else value


def predecessors(name: str) -> Iterable[str]:
    """Return the arguments that an argument replaced, even if it takes other values."""
    return (old for (kind, old), (_, to) in ADVICE.items() if kind == "engine" and to is not None and to[0] == name)


def translated(old: str, value: Any) -> Any:
    """Return the value of a removed argument, as its successor takes it."""
    to = ADVICE["engine", old][1]
    return value if to is None or isinstance(value, Unknown) else to[1](value)


def renamed_keys(written: Mapping[str, Any], gone: Iterable[str], accepted: Iterable[str]) -> dict[str, Any] | None:
    """Return a compilation config with its `gone` keys in newer words; None if a key has none, or two disagree.

    accepted: the keys that the release takes, as `compilation_config.pass_config.eliminate_noops`.
    """
    leaving, taken = set(gone), set(accepted)
    passes = dict(written.get("pass_config") or {}) if isinstance(written.get("pass_config"), dict) else {}
    top = {key: value for key, value in written.items() if key not in leaving and key != "pass_config"}
    for key in gone:
        inside = key.startswith("pass_config.")
        value = passes.pop(key.removeprefix("pass_config.")) if inside else written[key]
        by_value = NESTED.get(key, {})
        successor = by_value.get("*", by_value.get(str(value)))
        if successor is None or isinstance(value, Unknown):
            return None
        for name, fixed in successor.items():
            new = value if fixed is None else fixed
            target = passes if inside else top
            if _full(name, inside) not in taken or target.get(name, new) != new:
                return None
            target[name] = new
    return {**top, "pass_config": passes} if passes else top


def _full(name: str, inside: bool) -> str:
    return f"{COMPILATION}.pass_config.{name}" if inside else f"{COMPILATION}.{name}"
