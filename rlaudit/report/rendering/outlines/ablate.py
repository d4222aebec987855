"""The report of an ablation: the verdict of each layer first, then the figures behind it, block by block.

What the workers of the engines loaded stands arm by arm if it differs, and once if it does not.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlaudit.diagnosis.effect import Effect
from rlaudit.diagnosis.replay import Replay
from rlaudit.report.figures import (
    FURTHER,
    HEADLINE,
    TELLING,
    TITLES,
    arm_state,
    cost,
    difference,
    interval,
    short_name,
)
from rlaudit.report.parts.ablation import Arm
from rlaudit.report.rendering.differing_inputs import differing_inputs
from rlaudit.report.rendering.measured_on import measured_on
from rlaudit.report.rendering.moved import moved
from rlaudit.report.rendering.outline import (
    COST,
    Block,
    Brief,
    Code,
    Lines,
    Outline,
    Prose,
    Section,
    Table,
    listed,
    not_seen,
    verdicts,
)
from rlaudit.statistics.measurement.prompt_logprobs import holds_temperature
from rlaudit.text.counted import counted

if TYPE_CHECKING:
    from rlaudit.report.report import Report

ARMS = (
    "arm",
    *(TITLES[name] for name in TELLING),
    "vLLM",
    *(TITLES[name] for name in FURTHER),
    "tokens",
    "cached",
    "in force",
)
FACTORS = ("factor", "verdict", "on", "alone", "left out of parity", "because")
ENGAGED = {True: "yes", False: "no", None: "not known"}
COVERED = {
    "prompts": "recorded prompts",
    "completions": "recorded completions",
    "tokens_of_first_weights": "recorded tokens of the first weights",
}
INPUTS = ("input", "beside", "equal tokens", "trainer's ids", "engine's ids", "trainer's text", "engine's text")
INPUTS_SHOWN = 6
STAND = (
    "The layers below are of the trainer's tokens, which every engine got.",
    "A training whose sides render by themselves compares other tokens.",
    "To do: the same transformers and template on both sides, or token ids as prompts.",
)
# A longer value is cut; the JSON report has the whole.
LONGEST = 120


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order."""
    names = [block.name for block in report.get("blocks", ())]
    several = len(names) > 1
    codes = [
        Code(code, language, ": ".join(part for part in (block.name if several else "", title) if part))
        for block in report.get("blocks", ())
        for title, language, code in (
            ("In Python", "python", block.python),
            ("As a command", "shell", block.command),
            ("In a file for vllm serve --config" if block.command else "", "yaml", block.parity),
        )
        if code
    ]
    differing = _differing(report, names)
    return Outline(
        _title(report),
        [
            _inputs(report),
            moved(report),
            Section("bisection", "The release that moves it", _bisection(report), gathers=True),
            verdicts(report),
            Section("arms", "Arms", [block for name in names for block in _arms(report, name)], gathers=True),
            Section("replay", "Recorded tokens, replayed", _replays(report), gathers=True),
            Section("factors", "Factors", _factors(report, names), gathers=True),
            Section("loaded", "What the engines loaded", _loaded(report), gathers=True),
            listed("known-defects", "Known defects of these engines", _known_defects(report)),
            Section("parity", "Parity settings", codes),
            Section("settings", "What differs between the engines", differing, page_only=True),
            not_seen(report),
            listed("cost", COST, cost(report) if "run" in report else ()),
            Section("in-short", "In short", [_inshort_name(report)], closes=True, terminal_only=True),
        ],
        lead=report.get("description", ""),
        facts=_facts(report),
        about=measured_on(report),
    )


def _inputs(report: "Report") -> Section:
    """Return what stands before the layers, without blocks if the same tokens go in."""
    blocks: list[Block] = []
    inputs = differing_inputs(report)
    if inputs is not None:
        shown, more = inputs.different[:INPUTS_SHOWN], len(inputs.different) - INPUTS_SHOWN
        rows = [
            [
                *(differs.name, differs.side),
                *map(str, (differs.first, differs.trainer_ids, differs.engine_ids)),
                *(differs.trainer, differs.engine),
            ]
            for differs in shown
        ]
        note = [f"{more} more of them stand in the JSON report"] if more > 0 else []
        blocks = [Prose([f"Other tokens go in: {inputs.because}.", *STAND]), Table(INPUTS, rows), Lines(note)]
    return Section("inputs", "Inputs", blocks, leads=True)


def _bisection(report: "Report") -> list[Block]:
    """Return the releases that were measured, and what the two neighbours differ in."""
    if "bisection" not in report:
        return []
    bisection = report["bisection"]
    metric = TITLES.get(bisection.metric, bisection.metric)
    rows = [[release.version, release.engine, interval(release)] for release in bisection.measured]
    neighbours = bisection.neighbours
    lines = (
        [f"the ends agree in {metric}: nothing between them was measured"]
        if neighbours is None
        else [
            f"{metric} moves between {neighbours[0]} and {neighbours[1]}; a move that a later release took back is "
            "not seen"
        ]
    )
    lines += (
        [f"releases between them that were not measured: {', '.join(bisection.unmeasured)}"]
        if bisection.unmeasured
        else []
    )
    lines += (
        [f"releases that differ from both ends, so that there is more than one move: {', '.join(bisection.elsewhere)}"]
        if bisection.elsewhere
        else []
    )
    blocks: list[Block] = [Table(("vLLM", "engine", metric), rows, "The release that moves it"), Lines(lines)]
    blocks += [Lines(bisection.moved, "Defaults that differ")] if bisection.moved else []
    blocks += [Lines(bisection.advisories, "Known defects")] if bisection.advisories else []
    return blocks


def _known_defects(report: "Report") -> list[str]:
    several = len(report.get("blocks", ())) > 1
    return [
        f"{defect.name} ({', '.join(arm if several else arm.partition(': ')[2] for arm in defect.arms)}): "
        f"{defect.about} {defect.way_out}"
        for defect in report.get("known_defects", ())
    ]


def _title(report: "Report") -> str:
    before, after = report["versions"]["from"], report["versions"]["to"]
    return f"vLLM {before} -> {after}" if before else f"vLLM {after}" if after else "Ablation"


def _facts(report: "Report") -> list[str]:
    arms = report["arms"]
    tokens = sum(arm.measurements["k3"].tokens for arm in arms if "k3" in arm.measurements)
    return [f"{counted(len(arms), 'arm')}", f"{counted(tokens, 'token')}"] if arms else []


def _arms(report: "Report", block: str) -> list[Block]:
    """Return the arms of a block. Those that have the same figures as one before are named below the table."""
    rows, alike = list[list[str]](), dict[str, list[str]]()
    shown: list[Arm] = []
    for arm in (arm for arm in report["arms"] if arm.block == block):
        first = next((other for other in shown if arm.measurements and other.measurements == arm.measurements), None)
        if first is None:
            shown.append(arm)
            rows.append(_arm(arm))
        else:
            alike.setdefault(first.name, []).append(arm.name)
    lines = [
        f"{counted(len(names), 'arm')} {'has' if len(names) == 1 else 'have'} the same figures as {name!r}: "
        f"{', '.join(map(repr, names))}"
        for name, names in alike.items()
    ]
    repeats = next((part.repeats for part in report.get("blocks", ()) if part.name == block), None) or {}
    lines += [
        f"arm {short_name(name)!r}: bytes differ from the first run in {interval(share)} of "
        f"{counted(share.tokens, 'token')} that both sampled"
        for name, share in repeats.items()
    ]
    title = f"Block {block!r}: rollout against trainer, arm by arm (95 % intervals over prompts)"
    return [Table(ARMS, rows, title, on_terminal=1 + len(TELLING)), *([Lines(lines)] if lines else [])]


def _replays(report: "Report") -> list[Block]:
    """Compare what engines report of the recorded tokens: the reference with the recording, others with it."""
    shown: list[Block] = []
    for block in report.get("blocks", ()):
        replay = block.replay
        if replay is None:
            continue
        recorded = {} if replay.recorded is None else {"reference against the recording": replay.recorded}
        against = {
            f"{short_name(name)} against the reference": measurements for name, measurements in replay.arms.items()
        }
        rows = [
            [name, *(interval(measurements.get(metric)) for metric in HEADLINE), str(measurements["k3"].tokens)]
            for name, measurements in {**recorded, **against}.items()
        ]
        title = f"Block {block.name!r}: recorded tokens, replayed (95 % intervals over prompts)"
        shown.append(Table(("engine", *(TITLES[name] for name in HEADLINE), "tokens"), rows, title))
        differing = [f"{name}: recorded {before}, replayed {now}" for name, (before, now) in replay.differing.items()]
        missing = [f"{name}: {counted(count, 'token')} not reported" for name, count in replay.not_reported.items()]
        shown.append(Lines([replay.because, *_coverage(replay), *differing, *missing]))
    return shown


def _coverage(replay: Replay) -> list[str]:
    """Say how much of the recording was replayed."""
    parts = [
        f"{replayed} of {recorded} {what} ({100 * (replayed / recorded):.0f} %)"
        if replayed < recorded
        else f"all {recorded} {what}"
        for name, what in COVERED.items()
        for replayed, recorded in [(replay.coverage or {}).get(name, (0, 0))]
        if recorded
    ]
    return [f"replayed: {'; '.join(parts)}"] if parts else []


def _arm(arm: Arm) -> list[str]:
    measurements = arm.measurements
    if not measurements:
        return [short_name(arm.name), arm_state(arm)]
    engaged = ", ".join(f"{factor}: {ENGAGED[value]}" for factor, value in arm.engaged.items())
    figures, further = ([interval(measurements.get(name)) for name in names] for names in (TELLING, FURTHER))
    cached = "" if arm.cached_tokens is None else str(arm.cached_tokens)
    release = arm.environment.removeprefix("vllm ")
    return [short_name(arm.name), *figures, release, *further, str(measurements["k3"].tokens), cached, engaged]


def _factors(report: "Report", blocks: Sequence[str]) -> list[Block]:
    tables: list[Block] = []
    for block in blocks:
        rows = [_effect(effect) for effect in report["effects"] if effect.block == block and effect.worth_a_row]
        title = f"Block {block!r}: factors, paired by prompt"
        tables += [Table(FACTORS, rows, title, on_terminal=len(FACTORS) - 1)] if rows else []
    return tables


def _effect(effect: Effect) -> list[str]:
    measured = effect.first is not None
    return [
        f"{effect.factor}={effect.level}",
        effect.verdict + (", interacts" if effect.interacts else ""),
        TITLES.get(effect.metric, effect.metric) if measured else "",
        difference(effect.first) if measured else "",
        difference(effect.last) if effect.last is not None else "",
        effect.because,
    ]


def _loaded(report: "Report") -> list[Block]:
    """Return what the workers loaded and ran: each difference, then what all arms of a block share."""
    blocks: list[Block] = []
    for engines in loaded_engines(report):
        title = f"Block {engines.block!r}: settings in effect, read from the engines' worker processes"
        rows = [[label, "; ".join(f"{value}: {arms}" for value, arms in values)] for label, values in engines.differing]
        shared = [
            f"all arms, {kind}: {', '.join(f'{label} = {value}' for label, value in engines.shared if label in labels)}"
            for kind, labels in KINDS.items()
            if any(label in labels for label, _ in engines.shared)
        ]
        if rows:
            blocks.append(Table(("seen in the workers", "value: arms"), rows, title, headed=False))
        if shared:
            blocks.append(Lines(shared, "" if rows else title, mark=""))
    return blocks


def _differing(report: "Report", blocks: Sequence[str]) -> list[Block]:
    """Return the settings that the engines of a block resolved differently."""
    rows = []
    for block in blocks:
        arms = [arm for arm in report["arms"] if arm.block == block and arm.resolved]
        for name in dict.fromkeys(name for arm in arms for name in arm.resolved):
            parts = by_value({arm.name: _value(arm.resolved, name) for arm in arms})
            if len(parts) > 1:
                rows += [[f"{block}: {name}", value, names] for value, names in parts]
    return [Table(("setting", "value in the loaded engine", "arms"), rows)] if rows else []


def _value(resolved: Mapping[str, Any], name: str) -> str:
    if name not in resolved:
        return "no such setting"
    text = json.dumps(resolved[name], ensure_ascii=False)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _inshort_name(report: "Report") -> Brief:
    """Return what was found, how sure it is, what to do next."""
    inputs = differing_inputs(report)
    lines = [] if inputs is None else [(1, f"inputs MISMATCH: {inputs.because}")]
    lines += [(1, sentence) for sentence in report["move"].answer] if "move" in report else []
    for number, layer in enumerate(report["layers"], start=1):
        cause = f": {layer.cause}" if layer.cause else ""
        lines.append((1, f"{number}. {layer.layer} {layer.verdict.upper()}{cause}"))
        lines.append((4, f"because {layer.because}"))
    return Brief([*lines, (1, _how_sure(report)), (1, f"next: {_next(report)}")])


def _how_sure(report: "Report") -> str:
    """Say what the verdicts rest on."""
    measured = [arm.measurements["k3"] for arm in report["arms"] if arm.measurements]
    tokens = sum(measurement.tokens for measurement in measured)
    sequences = sum(measurement.sequences for measurement in measured)
    unmeasured = len(report["arms"]) - len(measured)
    missing = f"; arms without a figure: {unmeasured}" if unmeasured else ""
    return (
        f"how sure: {counted(tokens, 'token')} in {counted(sequences, 'sequence')} of {counted(len(measured), 'arm')}, "
        f"95 % intervals over prompts, effects paired by prompt{missing}; {counted(len(report['not_seen']), 'thing')} "
        "not seen (listed above)"
    )


def _next(report: "Report") -> str:
    """Return the next step of the first layer that does not match."""
    unsettled = [layer.next for layer in report["layers"] if not layer.verdict.passes]
    return unsettled[0] if unsettled else "nothing to do: all three layers match on these prompts"


# In reading order. What else a worker reports stands in the JSON report.
LABELS = {
    "model_runner": "model runner",
    "attention_backend": "attention",
    "attention_version": "attention kernels",
    "cudagraph_mode": "CUDA graph mode",
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
    "torch_cuda": "torch's CUDA version",
}
# What all arms share is listed by kind.
KINDS = {
    "engine": {
        *("model runner", "attention", "attention kernels", "sampler", "experts", "all-reduce", "cascade attention"),
    },
    "compilation": {"torch.compile", "CUDA graph mode", "CUDA graph modes replayed"},
    "numbers": {"quantization", "weights", "KV cache", "KV block size"},
    "machine": {"GPU", "compute capability", "driver", "torch's CUDA version"},
    "logprobs": {"logprobs change with the batch", "prompt logprobs"},
}
NOT_SEEN = "not seen"
NOT_THERE = "not in this build"
# More arms with the same value are "all others".
NAMED = 4


@dataclass(frozen=True)
class LoadedEngines:
    """What the arms of one block loaded."""

    block: str
    shared: Sequence[tuple[str, str]]  # (label, value)
    differing: Sequence[tuple[str, Sequence[tuple[str, str]]]]  # (label, [(value, which arms)])


def loaded_engines(report: "Report") -> list[LoadedEngines]:
    """Return what each block loaded, if a worker reported something."""
    blocks = []
    for name in dict.fromkeys(arm.block for arm in report["arms"]):
        seen = {arm.name: seen_in(arm) for arm in report["arms"] if arm.block == name and arm.loaded}
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
    """Return what the arm's workers loaded and ran, by label, without what could not be seen."""
    loaded = arm.loaded or {}
    features, because = loaded.get("features", {}), loaded.get("because", {})
    values = {
        label: features.get(name) or NOT_THERE
        for name, label in LABELS.items()
        if features.get(name) or name in because
    }
    return values | {label: value for label, reader in RAN.items() if (value := reader(arm)) is not None}


def by_value(values: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return each value with the arms that have it; the most frequent value may have "all others"."""
    arms: dict[str, list[str]] = {}
    for arm, value in values.items():
        arms.setdefault(value, []).append(arm)
    most = max(arms, key=lambda value: len(arms[value]), default="")
    return [
        (value, "all others" if value == most and len(names) > NAMED and len(arms) > 1 else ", ".join(names))
        for value, names in arms.items()
    ]


def _graphs_run(arm: Arm) -> str | None:
    ran = (arm.loaded or {}).get("ran")
    return None if not ran else " and ".join(sorted(ran.get("graphs") or ())) or NOT_THERE


def _cascade(arm: Arm) -> str | None:
    ran = (arm.loaded or {}).get("ran")
    if not ran:
        return None
    counted = ran.get("cascade")
    return NOT_THERE if counted is None else "used" if counted.get("used") else "not used"


def _batch_dependence(arm: Arm) -> str | None:
    identical = (arm.batch_probe or {}).get("identical")
    return None if identical is None else "no" if identical else "yes"


def _prompt_logprobs(arm: Arm) -> str | None:
    sequences = (arm.prompt_probe or {}).get("sequences")
    if not sequences:
        return None
    holds = holds_temperature(sequences, arm.sampling["temperature"])
    return "with temperature" if holds else "without temperature"


RAN = {
    "CUDA graph modes replayed": _graphs_run,
    "cascade attention": _cascade,
    "logprobs change with the batch": _batch_dependence,
    "prompt logprobs": _prompt_logprobs,
}
