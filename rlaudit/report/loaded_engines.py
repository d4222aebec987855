"""What the engines of a run had loaded, as their workers saw it: what differs between arms, and once what does not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlaudit.report.parts.ablation import Arm
from rlaudit.report.report import Report

# In reading order; what a worker reports beyond them stands in the JSON report.
LABELS = {
    "model_runner": "model runner",
    "attention_backend": "attention",
    "attention_version": "attention kernels",
    "cudagraph_mode": "CUDA graphs",
    "compilation": "torch.compile",
    "sampler": "sampler",
    "moe_backend": "experts",
    "all_reduce": "all-reduce",
    "quantization": "quantization",
    "weight_dtype": "weights",
    "kv_cache_dtype": "KV cache",
    "kv_block_size": "KV block size",
    "gpu": "GPU",
    "compute_capability": "compute capability",
    "driver": "driver",
    "torch_cuda": "CUDA of torch",
}
NOT_SEEN = "not seen"
NOT_THERE = "not there"
# Arms that are named one by one.
NAMED = 4


@dataclass(frozen=True)
class LoadedEngines:
    """Of one block: (label, value) that all arms share, and (label, [(value, which arms)]) where they differ."""

    block: str
    shared: Sequence[tuple[str, str]]
    differing: Sequence[tuple[str, Sequence[tuple[str, str]]]]

    @property
    def shared_line(self) -> str:
        """All that is the same, in one line."""
        return ", ".join(f"{label} {value}" for label, value in self.shared)

    @property
    def differing_lines(self) -> list[tuple[str, str]]:
        """(label, "TORCH_SDPA (reference), CPU_ATTN (all others)")."""
        return [(label, ", ".join(f"{value} ({arms})" for value, arms in parts)) for label, parts in self.differing]


def loaded_engines(document: Report) -> list[LoadedEngines]:
    """Every block of which a worker told something."""
    blocks = []
    for name in dict.fromkeys(arm["block"] for arm in document["arms"]):
        seen = {arm["name"]: seen_in(arm) for arm in document["arms"] if arm["block"] == name and arm.get("loaded")}
        labels = [label for label in [*LABELS.values(), *RAN] if any(label in values for values in seen.values())]
        shared, differing = [], []
        for label in labels:
            parts = by_value({arm: values.get(label, NOT_SEEN) for arm, values in seen.items()})
            if len(parts) > 1:
                differing.append((label, parts))
            elif parts[0][0] != NOT_THERE:
                shared.append((label, parts[0][0]))
        if shared or differing:
            blocks.append(LoadedEngines(name, shared, differing))
    return blocks


def seen_in(arm: Arm) -> dict[str, str]:
    """Label and value of what the arm's workers have and ran; nothing of what could not be seen."""
    loaded = arm.get("loaded", {})
    features, because = loaded.get("features", {}), loaded.get("because", {})
    values = {
        label: features.get(name) or NOT_THERE
        for name, label in LABELS.items()
        if features.get(name) or name in because
    }
    return values | {label: value for label, told in RAN.items() if (value := told(arm)) is not None}


def by_value(values: Mapping[str, str]) -> list[tuple[str, str]]:
    """Each value with the arms that have it, the many without naming them."""
    arms: dict[str, list[str]] = {}
    for arm, value in values.items():
        arms.setdefault(value, []).append(arm)
    most = max(arms, key=lambda value: len(arms[value]), default="")
    return [
        (value, "all others" if value == most and len(own) > NAMED and len(arms) > 1 else ", ".join(own))
        for value, own in arms.items()
    ]


def _graphs_run(arm: Arm) -> str | None:
    ran = arm.get("loaded", {}).get("ran")
    return None if not ran else " and ".join(sorted(ran.get("graphs") or ())) or NOT_THERE


def _cascade(arm: Arm) -> str | None:
    ran = arm.get("loaded", {}).get("ran")
    if not ran:
        return None
    counted = ran.get("cascade")
    return NOT_THERE if counted is None else "used" if counted.get("used") else "not used"


def _batch_dependence(arm: Arm) -> str | None:
    identical = arm.get("batch_probe", {}).get("identical")
    return None if identical is None else "bit-identical" if identical else "differs"


RAN = {
    "graphs that ran": _graphs_run,
    "cascade attention": _cascade,
    "alone against in a batch": _batch_dependence,
}
