"""The flags of `vllm serve`, and of the API server module before it, as one vLLM release parses them.

Dashes and underscores are the same; `--no-x` exists for switches only; a prefix that fits one flag counts as that flag;
`--a.b 1` builds JSON; of a repeated flag the last wins. Source: vllm/utils/argparse_utils.py of 0.8.5 to 0.33.0.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from packaging.version import Version

from rlaudit.configs.draft import Draft
from rlaudit.configs.engine_arguments.values import is_sequence, is_switch, value_of
from rlaudit.configs.engine_names import affirmed, canonical
from rlaudit.configs.syntax.expansion import Expanded
from rlaudit.configs.syntax.flags import Flag, flags, typed
from rlaudit.configs.syntax.node import Node
from rlaudit.settings.place import Place
from rlaudit.settings.rollout_config import Loss, Lost, Origin, Setting
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue, Declared
from rlaudit.vllm.lifetimes import flag_of_any_release
from rlaudit.vllm.milestones import COMPILATION_MODE, DOTTED_FLAGS, NO_MODEL_FLAG_FOR_SERVE, OPTIMIZATION_LEVEL

_DOTTED = "built from dotted flags"
# `{port}`, `<port>`, `%d`: another program fills them in.
_TEMPLATE = re.compile(r"\{\{|\{\w*\}|[<%$]")


@dataclass(frozen=True)
class Meaning:
    """What a spelling of a flag means."""

    name: str
    declared: Declared | None
    # Whether it is an engine argument.
    engine: bool
    negated: bool
    # Whether this release has it.
    now: bool


@dataclass
class FlagReader:
    """Reads flags of one release into a draft."""

    draft: Draft
    vllm: Version
    serve: bool = True
    named_model: Node | None = None
    positional: Node | None = None
    nested: dict[str, dict[str, Any]] = field(default_factory=dict)
    nested_at: dict[str, Place] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.catalogue = Catalogue.at(self.vllm)

    @property
    def model(self) -> Node | None:
        """The model: the positional word, else that of `--model` or of a config file."""
        return self.positional or self.named_model

    def read(self, words: Sequence[Node], start: int = 0) -> None:
        """Take all flags of words[start:]."""
        previous: Flag | None = None
        for flag in flags(words, start, self.switch):
            if flag.name:
                self.take(flag)
            else:
                self.word(flag, previous)
            previous = flag
        self.finish()

    def switch(self, name: str) -> bool:
        """Return whether a flag takes no value."""
        meaning = self.meaning(name)
        if meaning is None:
            return False
        return meaning.negated or (meaning.declared is not None and is_switch(meaning.declared))

    def meaning(self, name: str) -> Meaning | None:
        """Return what a flag's name means in this release, else in any other."""
        if name == "O":
            return None
        return _of_release(self.catalogue, name) or _of_any_release(name)

    def word(self, flag: Flag, previous: Flag | None) -> None:
        """Take a word that is no flag: the model, further unknown arguments, or a stray word."""
        node = flag.value
        assert node is not None
        if isinstance(node.value, Unknown):
            is_argument = "$@" not in node.text and "$*" not in node.text
            if self.positional is None and previous is None and self.serve and is_argument:
                self.positional = node
            else:
                where = f"in line {node.place.line}"
                self.draft.not_seen.append(f"further arguments of vLLM {where} are not known: {node.value.reason}")
            return
        if self.serve and self.positional is None and not self._is_truth(node, previous):
            self.positional = node
            return
        before = f" after --{previous.name.replace('_', '-')}" if previous is not None and previous.name else ""
        reason = f"argparse error at start: {node.value!r}{before} belongs to no flag; a switch takes no value"
        self.draft.lose(previous.name if previous is not None else "", node, Loss.REFUSED, reason)

    @staticmethod
    def _is_truth(node: Node, previous: Flag | None) -> bool:
        return previous is not None and bool(previous.name) and str(node.value).lower() in {"true", "false", "0", "1"}

    def take(self, flag: Flag) -> None:
        """Take one flag."""
        if flag.name == "O":
            self.optimization(flag)
            return
        head, _, path = flag.name.partition(".")
        meaning = self.meaning(head)
        node = flag.value if flag.value is not None else Node(True, flag.place, flag.place)
        if meaning is None:
            self.draft.lose(canonical(flag.name), node, Loss.REFUSED, "argparse error at start: no such flag")
        elif not meaning.engine:
            if meaning.name in {"model", "model_tag"} and flag.value is not None:
                self.named_model = flag.value
        elif not meaning.now and meaning.name in self.catalogue.engine:
            reason = f"argparse error at start: vLLM {self.vllm} has {meaning.name}, but not as {flag.place.setting}"
            self.draft.lose(meaning.name, node, Loss.REFUSED, reason)
        elif meaning.name == "model":
            self.model_flag(flag)
        elif path and self.vllm < DOTTED_FLAGS:
            reason = "argparse error at start: dotted flags are read from 0.9.0 on"
            self.draft.lose(meaning.name, node, Loss.REFUSED, reason)
        elif path:
            self.nest(meaning, path.rstrip("+"), node)
        else:
            self.set(meaning, flag, self.value(meaning, flag))
        if flag.more and meaning is not None and (meaning.declared is None or not is_sequence(meaning.declared)):
            for stray in flag.more:
                self.word(Flag("", stray, stray.place), flag)

    def model_flag(self, flag: Flag) -> None:
        """Take `--model`, which `vllm serve` refused before 0.11.1."""
        if flag.value is None:
            return
        self.named_model = flag.value
        if self.serve and self.vllm < NO_MODEL_FLAG_FOR_SERVE:
            reason = f"vllm serve of {self.vllm} refuses --model: the model is its first argument (until 0.11.1)"
            self.draft.not_seen.append(reason)

    def value(self, meaning: Meaning, flag: Flag) -> Any:
        """Return what arrives for a flag."""
        declared = meaning.declared
        if declared is None or (flag.doubtful and flag.value is not None):
            return True if flag.value is None else _plain(flag.value)
        if is_switch(declared):
            if flag.value is not None:
                reason = f"argparse error at start: {flag.place.setting} takes no value"
                self.draft.lose(meaning.name, flag.value, Loss.REFUSED, reason)
                return Unknown(reason)
            return not meaning.negated
        if flag.value is None:
            return Unknown(f"argparse error at start: {flag.place.setting} needs a value")
        nodes = (flag.value, *flag.more) if is_sequence(declared) else (flag.value,)
        for node in nodes:
            if isinstance(node.value, Unknown):
                return node.value
        arrives = value_of(tuple(str(node.value) for node in nodes), declared, self.vllm)
        if isinstance(arrives, Unknown) and meaning.now and not _TEMPLATE.search(str(flag.value.value)):
            self.draft.lose(meaning.name, flag.value, Loss.REFUSED, f"argparse error at start: {arrives.reason}")
        return arrives

    def set(self, meaning: Meaning, flag: Flag, value: Any) -> None:
        """Put a setting in the draft; an earlier one of the same name is overruled."""
        earlier = self.draft.engine.get(meaning.name)
        if earlier is not None and earlier.place is not None:
            reason = f"{flag.place.setting} in line {flag.place.line} wins"
            self.draft.lost.append(Lost(meaning.name, earlier.written, earlier.place, Loss.OVERRULED, reason))
        if flag.value is None:
            written: Any = not meaning.negated
        else:
            # A converted value (`8k`) is shown as written; a number or JSON as its value.
            text = flag.value.text or str(flag.value.plain())
            plain = _plain(flag.value)
            written = value if plain == value or isinstance(value, list | dict) else plain
            written = text if isinstance(written, Unknown) else written
        place = flag.place if flag.value is None else flag.value.place
        self.draft.engine[meaning.name] = Setting(meaning.name, value, written, Origin.FILE, place)

    def nest(self, meaning: Meaning, path: str, node: Node) -> None:
        """Keep `--compilation-config.mode 3`, which `finish` puts in the draft."""
        inner = self.nested.setdefault(meaning.name, {})
        self.nested_at[meaning.name] = node.place
        keys = path.split(".")[:20]
        for key in keys[:-1]:
            if not isinstance(inner.get(key), dict):
                inner[key] = {}
            inner = inner[key]
        inner[keys[-1]] = typed(node.value) if isinstance(node.value, str) else _plain(node)

    def finish(self) -> None:
        """Set what dotted flags build. vLLM appends it to the command, so that it wins over JSON anywhere in it."""
        for name, tree in self.nested.items():
            earlier = self.draft.engine.get(name)
            if earlier is not None and earlier.place is not None and earlier.note != _DOTTED:
                lost = Lost(name, earlier.written, earlier.place, Loss.OVERRULED, f"dotted flags of {name} win")
                self.draft.lost.append(lost)
            self.draft.engine[name] = Setting(name, tree, tree, Origin.FILE, self.nested_at[name], _DOTTED)

    def optimization(self, flag: Flag) -> None:
        """Take `-O3`, `-O 3`, `-O '{json}'`."""
        node = flag.value if flag.value is not None else Node(None, flag.place)
        value = typed(node.value) if isinstance(node.value, str) else node.value
        name, arriving, note = "optimization_level", value, ""
        if self.vllm < OPTIMIZATION_LEVEL:
            name = "compilation_config"
            key = "mode" if self.vllm >= COMPILATION_MODE else "level"
            arriving = {key: value} if isinstance(value, int) else value
            note = f"-O is a {key} of torch.compile in vLLM {self.vllm}, and the optimization level from 0.12.0"
        elif isinstance(value, dict):
            self.draft.lose("compilation_config", node, Loss.REFUSED, "-O takes a level from 0.12.0; -cc takes JSON")
            return
        self.draft.engine[name] = Setting(name, arriving, value, Origin.FILE, flag.place, note)


def take_variables(draft: Draft, variables: Mapping[str, Node]) -> None:
    """Set the environment variables that change what vLLM, NCCL, CUDA libraries or torch compute."""
    for name, node in variables.items():
        if name.startswith(("VLLM_", "NCCL_", "CUBLAS", "TORCH", "PYTORCH_", "FLASHINFER_", "CUDA_")):
            value = node.value if isinstance(node.value, Unknown) else _as_variable(node.value)
            written = node.text if isinstance(node, Expanded) and node.text else _as_variable(node.plain())
            draft.environment[name] = Setting(name, value, written, Origin.FILE, node.place)


def _as_variable(value: Any) -> Any:
    """Return the value of a variable as the process sees it: always text."""
    return value if value is None or isinstance(value, str | Unknown) else str(value)


def _plain(node: Node) -> Any:
    return typed(node.value) if isinstance(node.value, str) else node.plain()


def _of_release(catalogue: Catalogue, name: str) -> Meaning | None:
    dashed = name.replace("_", "-")
    target = catalogue.cli.get(dashed)
    if target is None:
        fits = {catalogue.cli[flag] for flag in _beginning(catalogue.cli, dashed)} if len(dashed) > 3 else set()
        matches = _beginning(catalogue.cli, dashed) if len(fits) == 1 else []
        if not matches:
            return None
        dashed, target = matches[0], fits.pop()
    negated = dashed.startswith("no-") and catalogue.cli.get(dashed[3:]) == target
    declared = catalogue.engine.get(target)
    return Meaning(target, declared or catalogue.frontend.get(target), declared is not None, negated, True)


def _beginning(cli: Iterable[str], spelt: str) -> list[str]:
    """Return the long flags that a word abbreviates, as argparse allows."""
    return [flag for flag in cli if len(flag) > 3 and flag.startswith(spelt)]


def _of_any_release(name: str) -> Meaning | None:
    """Return a flag of another release: removed since, or not added yet."""
    target = flag_of_any_release(name.replace("_", "-"))
    if target is None:
        return None
    field_name, kind = target
    negated = affirmed(name)[1] and field_name == affirmed(name.replace("-", "_"))[0]
    return Meaning(field_name, Declared(field_name, None, None, kind, ""), True, negated, False)
