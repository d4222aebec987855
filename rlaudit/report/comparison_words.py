"""What a comparison or a diagnosis says, as lines that the text and the Markdown report share."""

from collections.abc import Mapping
from typing import Any

from rlaudit.report.figures import interval, number
from rlaudit.report.report_format import Document

HEADLINE = ("mean_ratio_minus_one", "k3", "median_abs_log_ratio", "ppo_clip_fraction", "gspo_clip_fraction")
TITLES = {
    "mean_ratio_minus_one": "mean ratio - 1",
    "k3": "k3 (nats)",
    "median_abs_log_ratio": "median |d|",
    "ppo_clip_fraction": "PPO clipped",
    "gspo_clip_fraction": "GSPO clipped",
}
LABELS = (("because", "because"), ("next", "next"), ("falsifier", "refuted by"))
NEUTRAL = {"top_k": 0, "top_p": 1, "min_p": 0, "repetition_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0}


def headline(document: Document) -> str:
    """The report's first line."""
    if document["command"] == "diagnose":
        return f"Diagnosis of {len(document['sources'])} reports"
    compared = document["comparisons"]
    tokens = sum(one["tokens"] for one in compared)
    where = compared[0]["path"] if len({one["path"] for one in compared}) == 1 else f"{len(compared)} tables"
    return f"{where}: {tokens} tokens in {sum(one['sequences'] for one in compared)} sequences"


def layer_title(layer: Mapping[str, Any]) -> str:
    """Verdict, and the cause where one is named."""
    return str(layer["verdict"]).upper() + (f": {layer['cause']}" if layer["cause"] else "")


def layer_lines(layer: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(label, sentence) pairs; evidence has the label "-"."""
    lines = [(label, str(layer[key])) for key, label in LABELS if layer[key]]
    return [*lines, *(("-", str(line)) for line in layer["evidence"])]


def figures(one: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(title, value with interval) of the metrics that everybody looks at first."""
    found = one["measurements"]
    return [(TITLES[name], interval(found[name])) for name in HEADLINE if name in found]


def about(one: Mapping[str, Any]) -> list[str]:
    """Where the tokens came from and what was left out."""
    sampled = ", ".join(f"{name} {number(value)}" for name, value in _told(one["sampling"]))
    trainer = ", ".join(f"{name} {number(value)}" for name, value in _told(one["trainer"]))
    lines = [
        f"{one['path']}: {one['format']}, {one['files']} file{'s' * (one['files'] != 1)}"
        + (f"; trainer logprobs of {one['trainer_path']}" if one["trainer_path"] else ""),
        f"sampled at {sampled}; trainer at {trainer}",
        f"{one['compared_tokens']} of {one['tokens']} tokens compared; causes looked for in {one['evidence_tokens']}",
    ]
    data = one.get("data")
    if data is not None:
        given = data["sequences"] + data["sequences_left_out"]
        lines.append(
            f"figures rest on {data['sequences']} of {given} sequences, {1 - data['left_out']:.1%} of the data"
        )
    lines += one["alignment"]["messages"]
    return lines


def faults(one: Mapping[str, Any]) -> list[str]:
    """The first faults, with file and line."""
    shown = [
        f"{fault['path']}{':' + str(fault['line']) if fault['line'] is not None else ''}: "
        f"{fault['sequence'] + ': ' if fault['sequence'] else ''}{fault['message']}{_alike(fault)}"
        for fault in one["faults"]["shown"]
    ]
    rest = one["faults"]["count"] - sum(fault.get("count", 1) for fault in one["faults"]["shown"])
    return [*shown, *([f"and {rest} more"] if rest > 0 else [])]


def _alike(fault: Mapping[str, Any]) -> str:
    """How many of the same kind followed; reports of earlier releases have a line for each."""
    count = fault.get("count", 1)
    return f" (and {count - 1} more like it)" if count > 1 else ""


def _told(semantics: Mapping[str, float]) -> list[tuple[str, float]]:
    neutral = {
        "top_k": 0,
        "top_p": 1,
        "min_p": 0,
        "repetition_penalty": 1,
        "presence_penalty": 0,
        "frequency_penalty": 0,
    }
    return [(name, value) for name, value in semantics.items() if name not in neutral or value != neutral[name]]
