"""The value that argparse makes of a word of vLLM's command line, by the annotated type of the argument.

Source: vllm/engine/arg_utils.py `get_kwargs` (0.9.0 on) and `_compute_kwargs` (0.18.1:225-330): a boolean is a switch,
a Literal its words, a sequence takes several words, a dictionary or config object JSON, the rest its own type.
"""

import re
from typing import Any

from packaging.version import Version

from rlaudit.files.parse_json import parse_json
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Declared
from rlaudit.vllm.milestones import (
    AUTO_MODEL_LEN,
    COMPILATION_CONFIG_IS_NO_LEVEL,
    HF_OVERRIDES_MAY_BE_A_FUNCTION,
    PAIRS_ARE_NO_JSON,
    READS_SUFFIXES,
)

_SUFFIXED = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)([kKmMgGtT])")
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}
_OPTIONAL = re.compile(r"\bNone\b|^Optional\[")
_SEQUENCE = re.compile(r"\b(list|List|tuple|Tuple|set|Set|Sequence)\[")
_JSON = re.compile(r"\b([dD]ict\b|\w+Config\b|HfOverrides\b)")
# Not the keys of a dictionary.
_TEXT = re.compile(r"(?<!ict\[)\bstr\b")
_PAIRS = re.compile(r"\w+=\d{1,18}(,\w+=\d{1,18})*")
LONGEST_NUMBER = 40


def is_switch(declared: Declared) -> bool:
    """Return whether the flag takes no value: every boolean, except one that may also be a word (`hf_token`)."""
    return "bool" in declared.kind and not _TEXT.search(declared.kind)


def is_sequence(declared: Declared) -> bool:
    """Return whether the flag takes several words."""
    return bool(_SEQUENCE.search(declared.kind)) and not _JSON.search(declared.kind)


def value_of(words: tuple[str, ...], declared: Declared, vllm: Version) -> Any:
    """Return what arrives for the words after a flag; Unknown if argparse refuses them."""
    if is_sequence(declared):
        texts = not re.search(r"\[int\b", declared.kind)
        return list(words) if texts else [_number(word, int, declared.name) for word in words]
    return _scalar(words[0], declared, vllm)


def _scalar(word: str, declared: Declared, vllm: Version) -> Any:
    kind = declared.kind
    if _OPTIONAL.search(kind) and word in {"", "None"}:
        return None
    if _JSON.search(kind):
        return _json(word, declared, vllm)
    if declared.name in READS_SUFFIXES and vllm >= READS_SUFFIXES[declared.name]:
        return _readable(word, declared.name, vllm)
    if re.search(r"\bint\b", kind) or _counts(declared):
        return _number(word, int, declared.name)
    if re.search(r"\bfloat\b", kind):
        return _number(word, float, declared.name)
    return word


def _counts(declared: Declared) -> bool:
    """Return whether an alias (`BlockSize`, `OptimizationLevel`) stands for whole numbers."""
    choices = declared.choices or ()
    numbers = bool(choices) and all(re.fullmatch(r"-?\d+", str(choice)) for choice in choices)
    return numbers or declared.kind in {"OptimizationLevel", "BlockSize", "MaxLoRARanks"}


def _json(word: str, declared: Declared, vllm: Version) -> Any:
    # The name of a function is taken too, and refused when the engine starts.
    function = declared.kind == "HfOverrides" and vllm >= HF_OVERRIDES_MAY_BE_A_FUNCTION
    texts = _TEXT.search(declared.kind) or function
    if texts and not word.lstrip().startswith(("{", "[")):
        return word
    if declared.name == "compilation_config" and vllm < COMPILATION_CONFIG_IS_NO_LEVEL and re.fullmatch(r"[0-3]", word):
        return int(word)
    if vllm < PAIRS_ARE_NO_JSON and _PAIRS.fullmatch(word):
        return {key: int(number) for key, number in (pair.split("=") for pair in word.split(","))}
    try:
        value = parse_json(word)
    except ValueError:
        value = None
    if isinstance(value, dict | list):
        return value
    return Unknown(f"{word[:60]!r} is not the JSON that --{declared.name.replace('_', '-')} takes")


def _readable(word: str, name: str, vllm: Version) -> Any:
    """Return a number with a suffix: `8k` is 8000, `8K` is 8192 (human_readable_int)."""
    if word.strip().lower() == "auto" and name == "max_model_len" and vllm >= AUTO_MODEL_LEN:
        return -1
    match = _SUFFIXED.fullmatch(word.strip())
    if match is None:
        return _number(word, int, name)
    number, suffix = match.groups()
    base = 1000 if suffix.islower() else 1024
    if base == 1024 and "." in number:
        return Unknown(f"{word!r} is refused: no decimals before {suffix}")
    return int(float(number) * base ** _POWERS[suffix.lower()])


def _number(word: str, kind: type[int] | type[float], name: str) -> Any:
    if len(word) <= LONGEST_NUMBER:
        try:
            return kind(word)
        except ValueError:
            pass
    return Unknown(f"{word[:40]!r} is refused: --{name.replace('_', '-')} takes a number")
