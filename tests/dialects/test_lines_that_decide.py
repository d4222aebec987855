"""Each clause by itself, in a copy of a framework with every line that decides something, and without its own."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from packaging.version import Version
from reading import source_of
from readings import SECTIONS, Table, rows, tables

from rlaudit.configs.dialects import settling
from rlaudit.configs.dialects.clause import Clause, clauses
from rlaudit.configs.dialects.framework_code import FrameworkCode, filled, places
from rlaudit.configs.dialects.front_ends import trees_of
from rlaudit.configs.dialects.reading import Reading
from rlaudit.configs.dialects.spec import Spec, shipped, spec_at
from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.source import Source
from rlaudit.settings.rollout_config import Setting

SPECS = {name: spec_at(path) for name, path in shipped().items()}
WITH_A_COPY = [name for name, spec in SPECS.items() if "folder" in spec.declared.get("package", {})]
VALUES = {"value", "default", "sum", "hook"}
Files = Mapping[str, str]


@dataclass(frozen=True)
class Copy(Checkout):
    """A copy of a framework of which only these files are there: written to disk they would take most of the time."""

    texts: Files

    def file(self, relative: str) -> Source | None:
        return source_of(self.texts[relative], relative) if relative in self.texts else None

    def says(self, pattern: str) -> bool:
        return re.search(pattern, "".join(self.texts.values())) is not None


def most_known(table: Table) -> Table:
    """The row with the most values that are known."""
    alone = (row for _, row in rows(table) if row["reads"] == "one" and not row["files"])
    return max(alone, key=lambda row: sum(value != "open" for name in SECTIONS for value in row[name].values()))


def decided_by_code(spec: Spec) -> Iterator[tuple[str, str, Clause]]:
    """Each clause with a value of the framework's code, without its condition and key, so that it is what decides."""
    for section in ("engine", "sampling", "environment", "trainer", "objective"):
        for name, entry in spec.declared.get(section, {}).items():
            for clause in clauses(entry) if name != "*" else ():
                if VALUES.isdisjoint(clause) or "devices" in clause:
                    continue
                evidence = {key: clause[key] for key in ("at", "nowhere", "copy has", "because") if key in clause}
                if "hook" in clause or "sum" in clause:
                    # What they find is another matter than whether the copy has the line.
                    yield section, name, {"value": 1, **evidence}
                    continue
                for value in (clause.get("default", clause.get("value")), *clause.get("moved", {}).values()):
                    yield section, name, {"value": value, **evidence}


def every_line(spec: Spec) -> dict[str, list[str]]:
    """A copy with the words of every place, each on a line of its own."""
    files: dict[str, dict[str, None]] = {}
    for _, at in spec.places:
        for file, words in places(at):
            files.setdefault(file, {})[" ".join(words.split())] = None
    return {file: list(lines) for file, lines in files.items()}


def texts(lines: Mapping[str, list[str]]) -> Files:
    return {file: "".join(f"{line}\n" for line in kept) for file, kept in lines.items()}


def settled(reading: Reading, spec: Spec, section: str, name: str, clause: Clause, texts: Files) -> Setting | None:
    """The setting that a clause makes beside a copy."""
    reading.__dict__["code"] = FrameworkCode(Copy("copy", spec.declared["package"]["folder"], (), texts))
    kind = "options" if section == "objective" else section
    kept: dict[str, Setting] = getattr(reading.draft, kind)
    kept.pop(name, None)
    settling.put(reading, kind, name, clause)
    return kept.get(name)


@pytest.mark.parametrize("framework", WITH_A_COPY)
def test_a_value_does_not_outlive_the_line_that_decides_it(framework: str) -> None:
    spec, row = SPECS[framework], most_known(tables()[framework])
    vllm = row["vllm"][0] if isinstance(row["vllm"], list) else row["vllm"]
    source = source_of(row["text"], row["file"])
    reading = Reading(spec, next(iter(trees_of(source, spec))), source, Version(vllm))
    lines = every_line(spec)
    outlives, never_known, tried = [], [], 0
    for section, name, clause in decided_by_code(spec):
        at = filled(clause.get("at", clause.get("copy has", {})), clause["value"], reading.tree.call)
        if not at and "at" in clause:
            continue  # another package decides it
        word, there = clause.get("nowhere", ""), dict(places_of(at))
        whole = {
            file: [line for line in kept if "at" in clause or not word or not re.search(rf"\b(?:{word})\b", line)]
            for file, kept in lines.items()
        }
        for file, words in there.items():
            whole[file] = [*whole.get(file, []), *words]
        without = {
            file: [line for line in kept if not any(words in line for words in there.get(file, ()))]
            for file, kept in whole.items()
        }
        if word:
            folder = spec.declared["package"]["folder"]
            without[f"{folder}/another.py"] = [word.partition("|")[0]]
        tried += 1
        found = [settled(reading, spec, section, name, clause, texts(which)) for which in (whole, without)]
        known = [setting is not None and setting.known for setting in found]
        has_evidence = bool(at or word)
        never_known += [(section, name, clause)] if has_evidence and not known[0] else []
        outlives += [(section, name, clause)] if known[1] or (known[0] and not has_evidence) else []
    assert (outlives, never_known) == ([], [])
    assert tried


def places_of(at: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    files: dict[str, list[str]] = {}
    for file, words in places(at):
        files.setdefault(file, []).append(" ".join(words.split()))
    yield from files.items()
