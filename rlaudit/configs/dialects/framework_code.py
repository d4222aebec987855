"""The lines of a framework's source that decide a fact: the `at:` of a dialect.

    at: {skyrl/train/config/config.py: "max_num_seqs: int = 1024"}

is a file, relative to the folder that holds the package, and words of it. A fact of several releases names a place in
each, or a list of words if the file is the same; one that is there is enough. `{value}` in the words is the setting's
value as Python spells it, `{call}` in the file the word for the program or the class that the config is for. If a copy
of the framework lies around the config, each place is looked up in it: if file or words are gone, the copy may behave
differently, and the fact is open. `copy has:` names places in the same way: its clause holds only in a copy that has
one of them.

What stands in a config file of the package is a default of the framework, and no choice of the user.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlaudit.configs.draft import Draft, by_code
from rlaudit.configs.framework_source.checkout import Checkout, shown

_RECORD = "`rlaudit record` shows what it does"
# What code makes of a written key.
_OF_CODE = {"value", "map"}
# File -> words, or a list of alternatives.
At = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class FrameworkCode:
    """The copy of a framework around a config, if any."""

    checkout: Checkout | None = None

    def line_of(self, at: At) -> str | None:
        """Return `file:line` of the first place that the copy has; None if it has none. Needs a copy."""
        assert self.checkout is not None
        for file, words in places(at):
            source = self.checkout.file(file)
            start = words_in(source.text, words) if source is not None else None
            if source is not None and start is not None:
                return f"{shown(source.path)}:{source.text.count(chr(10), 0, start) + 1}"
        return None

    @property
    def where(self) -> str:
        """The copy's folder. Needs a copy."""
        assert self.checkout is not None
        return shown(f"{self.checkout.root}/{self.checkout.package}")

    @property
    def read(self) -> str:
        """Return a sentence about the copy that is read. Needs a copy."""
        assert self.checkout is not None
        package, version = self.checkout.package, self.checkout.version
        which = f"{package} {version}" if version is not None else f"a {package} that names no release"
        looked_up = "only the lines that decide were looked up; `rlaudit record` shows what it makes of this config"
        return f"the code in {self.where} ({which}) was not read as a whole: {looked_up}"

    def has(self, at: At) -> bool:
        """Return whether a copy exists and has one of some places."""
        return self.checkout is not None and self.line_of(at) is not None

    def doubt(self, clause: Mapping[str, Any], at: At, is_written: bool) -> str:
        """Return why a clause's value does not hold in this copy; empty if it does, or without a copy.

        at: the clause's places, filled. is_written: whether the value is what the config's key holds.
        """
        if self.checkout is None or clause.get("at") == {}:
            return ""
        if is_written and not (at and _OF_CODE & clause.keys()):
            return (
                ""
                if self.names(clause["key"])
                else f"the copy in {self.where} nowhere names {clause['key']}; {_RECORD}"
            )
        reasons = [self.is_gone(at)] if at else []
        if "nowhere" in clause:
            is_there = self.checkout.says(rf"\b(?:{clause['nowhere']})\b")
            reasons.append(f"the copy in {self.where} has {clause['nowhere']}; {_RECORD}" if is_there else "")
        if not reasons and "same as" not in clause:
            return f"no line of {self.where} is known to decide it; {_RECORD}"
        # One is enough.
        return reasons[0] if reasons and all(reasons) else ""

    def names(self, key: str) -> bool:
        """Return whether the copy has the name of a key, or of one of `a | b`; True without a copy."""
        names = [part.strip().rpartition(".")[2].lstrip("@").replace("-", "_") for part in key.split("|")]
        return self.checkout is None or any(self.checkout.says(rf"\b{re.escape(name)}\b") for name in names)

    def is_gone(self, at: At) -> str:
        """Return why a fact does not hold in this copy; empty if it does, or without a copy."""
        if self.checkout is None or not at or self.line_of(at) is not None:
            return ""
        missing = " or ".join(f"`{words}` in {file}" for file, words in places(at))
        return f"the copy in {self.where} does not have {missing}; {_RECORD}"


def places(at: At) -> Iterator[tuple[str, str]]:
    """Return each file with each of the words that are looked up in it."""
    for file, words in at.items():
        yield from ((file, phrase) for phrase in ([words] if isinstance(words, str) else words))


def filled(at: At, value: Any, *calls: str) -> At:
    """Return places with the setting's value and the words for the program in them."""
    if not at:
        return at
    spelt = json.dumps(value) if isinstance(value, str) else repr(value)
    named: dict[str, list[str]] = {}
    for file, words in places(at):
        for path in dict.fromkeys(file.replace("{call}", call) for call in calls):
            named.setdefault(path, []).append(words.replace("{value}", spelt))
    return named


def words_in(text: str, words: str) -> int | None:
    """Return the index of some words in a text, with any blanks between them; None if it lacks them."""
    pattern = r"\s+".join(map(re.escape, words.split()))
    match = re.search(pattern, text)
    return None if match is None else match.start()


def take_own_files(draft: Draft, checkout: Checkout) -> None:
    """Turn settings of the package's own config files into defaults, unless the config is one of these files."""
    if checkout.has(draft.path):
        return
    draft.lost = [lost for lost in draft.lost if not checkout.has(lost.place.path)]
    for settings in (draft.engine, draft.sampling, draft.environment, draft.trainer, draft.options):
        for name, setting in settings.items():
            if setting.place is not None and checkout.has(setting.place.path):
                where = f"{shown(setting.place.path)}:{setting.place.line}"
                note = f"{setting.note}; {where}" if setting.note else where
                settings[name] = by_code(name, setting.value, note)
                draft.decided[name] = where
