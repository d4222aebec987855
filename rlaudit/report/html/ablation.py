"""Sections of an ablation: its arms, its factors, what each arm was set to."""

import json
from collections.abc import Mapping
from typing import Any

from rlaudit.report.figures import HEADLINE, TITLES, arm_state, arm_title, cost, interval, several_blocks, worth_a_row
from rlaudit.report.html.lists import list_section, parity
from rlaudit.report.html.parts import table
from rlaudit.report.html.section import Section
from rlaudit.report.loaded_engines import by_value, loaded_engines
from rlaudit.report.report_format import Document

METRICS = {
    "k3": "k3 (nats)",
    "median_abs_log_ratio": "median |d|",
    "gspo_clip_fraction": "GSPO clipped",
    **TITLES,
}
ENGAGED = {True: "yes", False: "no", None: "not known"}
# A value that is longer is a whole configuration of its own, to be read in the JSON report.
LONGEST = 120


def sections(document: Document) -> list[Section | None]:
    """In reading order."""
    return [
        _arms(document),
        _factors(document),
        parity(document),
        _loaded(document),
        _settings(document),
        list_section("cost", "Cost", cost(document) if "run" in document else ()),
    ]


def title(document: Document) -> str:
    """`vLLM 0.8.5 → 0.18.1`."""
    versions = document["versions"]
    if versions["to"] is None:
        return "Ablation"
    return f"vLLM {versions['from']} → {versions['to']}" if versions["from"] else f"vLLM {versions['to']}"


def facts(document: Document) -> list[str]:
    """How much was run."""
    arms = document["arms"]
    tokens = sum(arm["measurements"]["k3"]["tokens"] for arm in arms if "k3" in arm["measurements"])
    return [f"{len(arms)} arms", f"{tokens} tokens"] if arms else []


def _arms(document: Document) -> Section | None:
    if not document["arms"]:
        return None
    blocks = several_blocks(document)
    rows = []
    for arm in document["arms"]:
        found = arm["measurements"]
        figures = [interval(found.get(name)) for name in HEADLINE] if found else [arm_state(arm), "", "", ""]
        tokens = str(found["k3"]["tokens"]) if found else ""
        engaged = ", ".join(f"{factor}: {ENGAGED[value]}" for factor, value in arm["engaged"].items())
        name, version = arm_title(arm, blocks), arm["environment"].removeprefix("vllm ")
        rows.append([name, version, *figures, tokens, str(arm.get("cached_tokens", "")), engaged])
    header = ["arm", "vLLM", *(METRICS[name] for name in HEADLINE), "tokens", "cached", "in force"]
    return Section("arms", "Arms", table(header, rows, "Arms, rollout against trainer, 95 % intervals over prompts"))


def _factors(document: Document) -> Section | None:
    if not document["effects"]:
        return None
    rows = [
        [
            f"{effect['block']}: {effect['factor']}={effect['level']}",
            effect["verdict"] + (", interacts" if effect["interacts"] else ""),
            TITLES.get(effect["metric"], effect["metric"]),
            interval(effect["first"], "difference"),
            interval(effect["last"], "difference"),
            effect["because"],
        ]
        for effect in document["effects"]
        if worth_a_row(effect)
    ]
    header = ["factor", "verdict", "on", "first", "last", "because"]
    return Section("factors", "Factors", table(header, rows, "Factors, paired by prompt"))


def _loaded(document: Document) -> Section | None:
    """What the workers said they loaded and ran: each difference, then what all arms of a block share."""
    rows = []
    for block in loaded_engines(document):
        rows += [[f"{block.block}: {label}", value, arms] for label, parts in block.differing for value, arms in parts]
        rows += [[f"{block.block}: {label}", value, "all"] for label, value in block.shared]
    if not rows:
        return None
    header = ["seen in the workers", "value", "arms"]
    return Section("loaded", "What the engines loaded", table(header, rows, "Loaded and run, differences first"))


def _settings(document: Document) -> Section | None:
    """What differs between arms of a block, as the engines resolved it; what is the same everywhere is left out."""
    rows = []
    for block in document.get("blocks", ()):
        arms = [arm for arm in document["arms"] if arm["block"] == block["name"] and arm["resolved"]]
        names = list(dict.fromkeys(name for arm in arms for name in arm["resolved"]))
        for name in names:
            values = {arm["name"]: _value(arm["resolved"], name) for arm in arms}
            parts = by_value(values)
            if len(parts) > 1:
                rows += [[f"{block['name']}: {name}", value, own] for value, own in parts]
    if not rows:
        return None
    header = ["setting", "value in the loaded engine", "arms"]
    return Section("settings", "What differs between the engines", table(header, rows, "Settings that differ"))


def _value(resolved: Mapping[str, Any], name: str) -> str:
    if name not in resolved:
        return "no such setting"
    text = json.dumps(resolved[name], ensure_ascii=False)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
