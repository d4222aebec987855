"""What of a recording others may read: a rule for each field of each kind of record. What has no rule is left out.

Kept: numbers, settings whose names and words stand in vLLM's own code, releases, classes of public packages, names and
shapes of tensors. Left out, or replaced by a hash under a key: token ids, prompts, stop strings, command lines, paths,
hosts, names and values that a user chose, and the text of errors, of which the class remains.

Token ids become hashes of beginnings: the number at a place stands for all ids up to there, so that equal numbers are
equal beginnings and nothing else is known of them. A hash without a key would be guessed, as vocabularies are public;
the key is forgotten once the copy is written.

Not covered: logprobs remain. A reader who has the very weights and guesses a prompt can confirm the guess, and read the
completion off its logprobs token by token. Standard library only: `inspect` makes its page by these rules.
"""

import hashlib
import json
import re
import secrets
from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rlaudit.recording.public_words import public_words

Record = dict[str, Any]
Rule = Callable[["Redaction", Any], Any]
# The least number of a beginning: no vocabulary has so many ids, so that the two are never taken for each other. Of 30
# bits: two beginnings that part at a token meet there in one of 10^9 cases, and by the next token in one of 10^18.
BEGINNING = 1 << 30
HASHED = "redacted-"
KEY_NAME = "of a copy"  # its hash names the key
KEY_BYTES = 32

# Of classes, functions and hooks: what begins with a public package is the package's own name.
_PACKAGES = (
    "vllm torch transformers trl verl openrlhf skyrl skyrl_train nemo_rl prime_rl swift unsloth unsloth_zoo axolotl "
    "areal open_instruct roll pipelinerl accelerate peft deepspeed"
)
_OF_A_PACKAGE = re.compile(rf"(?:{'|'.join(_PACKAGES.split())})(?:[.:][A-Za-z_]\w*)+")
# Methods of a worker and of its model, of any class.
_HOOK = re.compile(r"(?:worker|model)\.[A-Za-z_]\w*")
_NUMBER = re.compile(r"-?\d{1,6}(?:\.\d{1,6})?")
_RELEASE = re.compile(
    r"(\d{1,6}(?:\.\d{1,6}){0,4}(?:\.?(?:a|b|rc|post|dev)\d{1,8}){0,3})(?:\+(?:(cpu|cu\d+|rocm[\d.]+)\b)?.*)?"
)
# Names that vLLM gives a request: a number, with what releases put before and behind it.
_NUMBERED = re.compile(r"\d{1,9}(?:_\d{1,9})?(?:_parallel_sample_\d{1,6})?(?:-[0-9a-f]{8})?")
# A name of a layer; a worker's method may be given anything as one.
_TENSOR = re.compile(r"[A-Za-z_]\w{0,80}(?:\.\w{1,80}){0,30}")
_ERROR = re.compile(r"([A-Za-z_]\w{0,80}):?(?: |$)")
# Lists of numbers that are no token ids.
_SIZES = frozenset({"cudagraph_capture_sizes", "cuda_graph_sizes", "compile_sizes", "compile_ranges_split_points"})
_ARGUMENTS = frozenset(
    {
        *("method", "mode", "level", "tags", "clear_cache", "timeout", "non_block", "reset_running_requests"),
        *("reset_connector", "wait_for_inflight_requests", "is_checkpoint_format"),
    }
)


def new_redaction(tokens: bool) -> "Redaction":
    """Return the rules under a key of their own. tokens: whether ids become hashes and logprobs stay, or both go."""
    public = public_words()
    return Redaction(secrets.token_bytes(KEY_BYTES), public["words"], public["names"], tokens)


class Redaction:
    """The rules. key: 32 bytes. words, names: values and keys that vLLM's own code knows."""

    def __init__(self, key: bytes, words: Iterable[str], names: Iterable[str], tokens: bool = True) -> None:
        self.key, self.words, self.names, self.tokens = key, frozenset(words), frozenset(names), tokens

    def redacted(self, record: Record) -> Record:
        """Return what others may read of a record; if it has no rules, a record that says so.

        A trainer's rows have their ids and logprobs from `redacted_rows.py`, and here none.
        """
        rules = _RULES.get(record["kind"])
        if rules is None:
            kind = self._text(record["kind"])
            return {"kind": "dropped", "at": record.get("at"), "what": kind, "why": "no rule says what of it is public"}
        kept = {"kind": record["kind"]}
        for name, value in record.items():
            if name in rules:
                kept[name] = None if value is None else rules[name](self, value)
        if record["kind"] == "process":
            kept["key"] = self.hidden(KEY_NAME)
        return kept

    def hidden(self, value: Any) -> str:
        """Return what stands for a text: equal for equal texts under one key."""
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
        return HASHED + hashlib.blake2b(text.encode(), key=self.key, digest_size=8, person=b"text").hexdigest()

    def beginnings(self, ids: Iterable[int]) -> "array[int]":
        """Return a number for each beginning of these ids."""
        state, digests = hashlib.blake2b(key=self.key, digest_size=4, person=b"ids"), bytearray()
        update, copy, data = state.update, state.copy, array("i", ids).tobytes()
        for end in range(4, len(data) + 4, 4):
            update(data[end - 4 : end])
            digests += copy().digest()
        return array("i", [BEGINNING | (number & (BEGINNING - 1)) for number in array("I", bytes(digests))])

    def is_public(self, text: str) -> bool:
        """Return whether a text is a word of public code, or a small number."""
        return text in self.words or any(pattern.fullmatch(text) for pattern in (_OF_A_PACKAGE, _NUMBER))

    # Rules, of one value each -----------------------------------------------------------------------------------------

    def _text(self, value: Any) -> Any:
        return value if isinstance(value, str) and self.is_public(value) else self.hidden(value)

    def _hook(self, value: Any) -> Any:
        return value if _HOOK.fullmatch(value) else self._text(value)

    def _hooks(self, value: Any) -> Any:
        return [self._hook(hook) for hook in value]

    def _tensors(self, value: Any) -> Any:
        return [name if _TENSOR.fullmatch(name) else self.hidden(name) for name in value]

    def _kept(self, value: Any) -> Any:
        return value

    def _ids(self, value: "array[int]") -> "array[int] | str":
        return self.beginnings(value) if self.tokens else ""

    def _logprobs(self, value: "array[float]") -> "array[float] | str":
        return value if self.tokens else ""

    def _left_out(self, value: object) -> str:
        return ""

    def _request(self, value: Any) -> Any:
        return value if _NUMBERED.fullmatch(value) else self.hidden(value)

    def _error(self, value: Any) -> Any:
        match = _ERROR.match(value)
        return match.group(1) if match else self.hidden(value)

    def _answer(self, value: Any) -> Any:
        return value if isinstance(value, bool) else None

    def _release(self, value: Any) -> Any:
        match = _RELEASE.fullmatch(value)
        return None if match is None else match.group(1) + ("+" + match.group(2) if match.group(2) else "")

    def _versions(self, value: Any) -> Any:
        kept = {name: self._release(release) for name, release in value.items() if isinstance(release, str)}
        return {name: release for name, release in kept.items() if release is not None and name in self.words}

    def _variables(self, value: Any) -> Any:
        return {name: self._text(text) for name, text in value.items() if name in self.names}

    def _arguments(self, value: Any) -> Any:
        return {name: self._plain(argument, name) for name, argument in value.items() if name in _ARGUMENTS}

    def _table(self, value: Any) -> Any:
        # These are names of fields, of which a fork of vLLM may have others.
        return {name: self._plain(field, name) for name, field in value.items() if name in self.names}

    def _model(self, value: Any) -> Any:
        kept = {name: value.get(name) for name in ("number", "trainable", "adapters", "casts")}
        return {**kept, "class": self._text(value.get("class")), "dtype": self._text(value.get("dtype"))}

    def _plain(self, value: Any, name: str) -> Any:
        """Return plain data with public names, words and numbers, and in each table a hash of the rest of it."""
        if isinstance(value, dict):
            kept = {key: self._plain(entry, key) for key, entry in value.items() if key in self.names}
            others = {key: entry for key, entry in value.items() if key not in self.names}
            return {**kept, "left_out": self.hidden(others)} if others else kept
        if isinstance(value, (list, tuple)):
            if name not in _SIZES and any(isinstance(entry, (int, float)) for entry in value):
                return [self.hidden(value)]
            return [self._plain(entry, name) for entry in value]
        if isinstance(value, str):
            return self._text(value) if value else value
        return self.hidden(value) if "token_id" in name and type(value) is int else value


def _rules(kept: str = "", **others: Rule) -> Mapping[str, Rule]:
    return {"at": Redaction._kept, **dict.fromkeys(kept.split(), Redaction._kept), **others}


# A kind without rules is dropped, a field without one is left out. `kept` are numbers, flags and words of the
# recorder's own, and of tensors their names and shapes, which are the architecture's.
_RULES: Mapping[str, Mapping[str, Rule]] = {
    "process": _rules(
        "schema pid parent wall",
        host=Redaction.hidden,
        boot=Redaction.hidden,
        python=Redaction._release,
        versions=Redaction._versions,
        environment=Redaction._variables,
    ),
    "hooks": _rules(hooked=Redaction._hooks),
    "engine": _rules(
        "number",
        **{"class": Redaction._text},
        written=Redaction._table,
        effective=Redaction._table,
        error=Redaction._error,
    ),
    # As in the configuration, so that the two are joined.
    "worker": _rules("device capability", **{"class": Redaction._text}, instance=Redaction._text),
    "model": _rules("dtypes", **{"class": Redaction._text}),
    "sampling": _rules("sampling", parameters=Redaction._table),
    "prompt": _rules(prompt=Redaction.hidden, ids=Redaction._ids),
    "request": _rules(
        "sampling index parts salted engine",
        request=Redaction._request,
        parent=Redaction._request,
        prompt=Redaction.hidden,
        lora=Redaction.hidden,
    ),
    "sequence": _rules(
        "steps cached visible resumed engine",
        request=Redaction._request,
        prompt=Redaction.hidden,
        ids=Redaction._ids,
        logprobs=Redaction._logprobs,
        finish=Redaction._text,
    ),
    "steps": _rules("first stamps tokens engines"),
    "event": _rules(
        "call side in_flight engine",
        what=Redaction._hook,
        arguments=Redaction._arguments,
        result=Redaction._answer,
        error=Redaction._error,
    ),
    "repeats": _rules("call count end"),
    "tensors": _rules("tensors shapes", names=Redaction._tensors),
    "load": _rules("load inside side in_flight tensors end", names=Redaction._tensors, error=Redaction._error),
    "weights": _rules("load tensors values sent values_sent values_rounded values_held"),
    "trainer": _rules(
        "call gradients backward asked_for rows begins lengths",
        model=Redaction._model,
        ids=Redaction._left_out,
        logprobs=Redaction._left_out,
    ),
    "totals": _rules("requests sequences tokens by_sampling ended"),
    "failed": _rules(hook=Redaction._hook, error=Redaction._error),
    "dropped": _rules("what why"),
}
