"""What sets a factor on a release: vLLM's own names and values, in words, and in three forms to paste.

Whether a release takes a setting is what an inspection finds in it. If it does not, the first later release that does
is named, and the setting is in no form.
"""

import json
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from packaging.version import Version

from rlaudit.configs.readers.config_file import spell_key
from rlaudit.configs.readers.serve import spell_flag
from rlaudit.configs.source import Source
from rlaudit.inspection.files import Encoding, TextFile
from rlaudit.inspection.inspect_file import Context, inspect_file
from rlaudit.inspection.read_configs import known_dialects
from rlaudit.laboratory.studies.arms.plan import known_factors
from rlaudit.laboratory.studies.arms.rollout import engine_settings
from rlaudit.laboratory.treatment import Treatment
from rlaudit.rules import known_rules
from rlaudit.severity import Severity
from rlaudit.vllm.catalogue import Catalogue, known_versions
from rlaudit.vllm.machine import Machine

# What the report is about runs on GPUs, even if it was tried on a CPU.
MACHINE = Machine()
HF_OVERRIDES, HEAD = "hf_overrides", "head_dtype"
# The columns of a comment, in a report on a terminal of 80: code is never wrapped.
COMMENT = 76
# Engine arguments and variables.
Settings = tuple[Mapping[str, Any], Mapping[str, str]]


@dataclass(frozen=True)
class Remedy:
    """What sets a factor to a level."""

    # The release that it is for.
    version: str
    engine_args: Mapping[str, Any]
    variables: Mapping[str, str]
    # Names of settings that have to go.
    left_out: Sequence[str] = ()
    # The dtype of the trainer's head, if that has to change.
    trainer_head: str = ""
    # Whether it is another release than today's.
    moves: bool = False
    # Whether the release takes these settings.
    possible: bool = True
    # If it does not, the first later release that does.
    since: str | None = None

    @property
    def words(self) -> str:
        """What to set, as `enable_prefix_caching=False and async_scheduling=False`."""
        named = [f"vllm=={self.version}"] if self.moves else []
        named += [f"{name}={value}" for name, value in self.variables.items()]
        named += [*map(_word, self.engine_args.items()), *(f"no {name}" for name in self.left_out)]
        named += [f"the trainer's head in {self.trainer_head}"] if self.trainer_head else []
        return " and ".join(named)

    @property
    def step(self) -> str:
        """What to do."""
        if self.possible:
            return f"set {self.words}, then audit again"
        return f"{self.limit}: {self.words}"

    @property
    def tried(self) -> str:
        """What to do, if it was done here and helped."""
        return f"set {self.words} (tried here: it takes the mismatch away)" if self.possible else self.step

    @property
    def limit(self) -> str:
        """Since when it is possible, if the release does not take it."""
        return f"not possible before vLLM {self.since}" if self.since else f"not possible with vLLM {self.version}"


@dataclass(frozen=True)
class Written:
    """Settings in three forms; None if nothing can be set in this form."""

    python: str | None
    command: str | None
    config_file: str


def remedy_of(treatment: Treatment, factor: str, level: str) -> Remedy:
    """Return what sets a factor on the engine of a treatment."""
    changed = known_factors()[factor].apply(treatment, level)
    catalogue = Catalogue.at(changed.version)
    before, after = _settings(treatment, catalogue), _settings(changed, catalogue)
    args, variables = (
        {name: value for name, value in new.items() if old.get(name) != value}
        for old, new in zip(before, after, strict=True)
    )
    names = frozenset([*args, *variables])
    later = (version for version in known_versions() if version > Version(changed.version))
    taken = _heeds(changed.version, before, after, names)
    head = changed.trainer.resolved_head_dtype
    return Remedy(
        changed.version,
        args,
        variables,
        [name for old, new in zip(before, after, strict=True) for name in old if name not in new],
        trainer_head="" if head == treatment.trainer.resolved_head_dtype else head,
        moves=changed.version != treatment.version,
        possible=taken,
        since=None
        if taken
        else next((str(version) for version in later if _heeds(str(version), before, after, names)), None),
    )


def _settings(treatment: Treatment, catalogue: Catalogue) -> Settings:
    """Return engine arguments and variables of a treatment on GPUs."""
    wanted = engine_settings(treatment, MACHINE.platform)
    args = {name: value for name, value in treatment.cuda_engine_args.items() if name in catalogue.engine}
    args |= wanted.engine_args
    if treatment.concurrency == "alone":
        args["max_num_seqs"] = 1
    if treatment.fp32_head:
        others = args.get(HF_OVERRIDES)
        args[HF_OVERRIDES] = {**(others if isinstance(others, Mapping) else {}), HEAD: "float32"}
    # A backend is named once: by its argument if the release has it.
    backed = {} if treatment.cuda_engine_args.keys() & args.keys() else treatment.cuda_variables
    known = {name: value for name, value in backed.items() if name in catalogue.variables}
    return args, {**known, **treatment.declared}


def _heeds(version: str, before: Settings, after: Settings, names: frozenset[str]) -> bool:
    """Return whether a release heeds the named settings: an inspection with them has no error that one without lacks,
    and no such warning about one of them.
    """
    new = _found(version, in_python(*after)) - _found(version, in_python(*before))
    return not any(severity is Severity.ERROR or setting in names for setting, severity in new)


@lru_cache(maxsize=1024)
def _found(version: str, settings: str) -> frozenset[tuple[str, Severity]]:
    """Return the setting and the severity of the errors and warnings about an engine."""
    release = Version(version)
    context = Context(known_rules(), known_dialects(), MACHINE, release, release, machine_known=True)
    source = Source("settings.py", f"from vllm import LLM\n{settings}")
    inspected = inspect_file(TextFile(source, Encoding(), named=True), context)
    findings = ((finding.setting, finding.severity) for finding in inspected.findings)
    return frozenset(finding for finding in findings if finding[1] is not Severity.NOTE)


def written(version: str, remedies: Sequence[tuple[Remedy, str]], title: str) -> Written | None:
    """Return remedies, each with a comment, in three forms; None if there is nothing to set and nothing to say."""
    possible = [(remedy, comment) for remedy, comment in remedies if remedy.possible]
    args = {name: value for remedy, _ in possible for name, value in remedy.engine_args.items()}
    variables = {name: value for remedy, _ in possible for name, value in remedy.variables.items()}
    notes = [f"# vLLM {version}: {title}", *_notes(remedies)]
    if len(notes) == 1 and not args and not variables:
        return None
    comments = {name: comment for remedy, comment in possible for name in (*remedy.variables, *remedy.engine_args)}
    file = [*notes, *_in_config_file(version, args, variables, comments)]
    if not args and not variables:
        return Written(None, None, _lines(file))
    python = [*notes, *(f"# {name}: {comment}" for name, comment in comments.items()), in_python(args, variables)]
    return Written(_lines(python), _lines([*notes, *_in_command(version, args, variables)]), _lines(file))


def _notes(remedies: Sequence[tuple[Remedy, str]]) -> Iterator[str]:
    """Yield comments on what no engine argument and no variable of the release sets."""
    for remedy, comment in remedies:
        besides = replace(remedy, engine_args={}, variables={}).words if remedy.possible else remedy.step
        if besides:
            yield from textwrap.wrap(f"{besides} ({comment})", COMMENT, initial_indent="# ", subsequent_indent="#   ")


def in_python(engine_args: Mapping[str, Any], variables: Mapping[str, str]) -> str:
    """Return a call of vLLM's LLM with the engine arguments as keywords, after the variables."""
    lines = [f"os.environ[{json.dumps(name)}] = {json.dumps(value)}" for name, value in variables.items()]
    lines = ["import os", "# Before vllm is imported:", *lines] if lines else []
    keywords = (f"    {name}={_python(value)}," for name, value in engine_args.items())
    return "\n".join([*lines, "LLM(", "    model=MODEL,", *keywords, ")"])


def _in_command(version: str, engine_args: Mapping[str, Any], variables: Mapping[str, str]) -> Iterator[str]:
    """Return a command, after comments on what has no flag."""
    spelt = {name: spell_flag(Catalogue.at(version).cli, name, value) for name, value in engine_args.items()}
    yield from (f"# {_word((name, engine_args[name]))}: no flag sets it" for name, flag in spelt.items() if not flag)
    words = [word for flag in spelt.values() if flag for word in flag if word]
    before = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    yield " ".join([*before, "vllm serve MODEL", *map(shlex.quote, words)])


def _in_config_file(
    version: str, engine_args: Mapping[str, Any], variables: Mapping[str, str], comments: Mapping[str, str]
) -> Iterator[str]:
    """Return lines of YAML for `vllm serve --config`, after comments on what such a file cannot hold."""
    yield from (f"# {name}={value}: a variable, which no file holds" for name, value in variables.items())
    for name, value in engine_args.items():
        spelt = spell_key(Version(version), name, value)
        if spelt is None:
            yield f"# {_word((name, value))}: a file cannot hold it"
        else:
            yield f"{spelt[0]}: {spelt[1]}  # {comments[name]}"


def _python(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _word(setting: tuple[str, Any]) -> str:
    """Return `name=value`, and `name.key=value` of a mapping."""
    name, value = setting
    if isinstance(value, Mapping):
        return " and ".join(f"{name}.{key}={inner}" for key, inner in value.items())
    return f"{name}={value}"


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"
