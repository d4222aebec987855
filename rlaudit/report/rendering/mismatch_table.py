"""A run's mismatch against a project's thresholds as Markdown: value, threshold, ratio, and the noise."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlaudit.errors import NotFinished
from rlaudit.report.rendering.markdown_escaped import escaped, table
from rlaudit.text.counted import counted

if TYPE_CHECKING:
    from rlaudit.curves.comparison import CurveMetric
    from rlaudit.report.report import Report
    from rlaudit.statistics.measurement.measure import Measurement


@dataclass(frozen=True)
class Bar:
    """A metric and what it must stay below."""

    metric: str  # rlaudit's name
    called: str  # the project's name
    threshold: float
    least: float = 0.0  # the value at parity


@dataclass(frozen=True)
class MismatchTable:
    """What a project asks for."""

    name: str
    asks: str  # the project's rule in a sentence
    bars: tuple[Bar, ...]
    steps: int | None = None  # how many training steps must stay below, None for any


# docs/development.md and .cursor/BUGBOT.md of prime-rl ask for the mean KL mismatch of each of 20 steps if a model is
# new, and pull requests that move vLLM show it.
PRIME_RL = MismatchTable(
    name="prime-rl",
    asks="prime-rl asks for all entries below 0.015 over 20 steps on its math environment with batch_size=64.",
    bars=(Bar("k3", "mismatch KL", 0.015),),
    steps=20,
)
# docs/adding-new-models.md of NeMo-RL has the threshold of token_mult_prob_error for equal precision on both sides. Its
# functional tests have that of gen_kl_error for dense models in bfloat16, and wider ones for FP8 rollouts and filters.
NEMO_RL = MismatchTable(
    name="nemo-rl",
    asks="NeMo-RL asks for token_mult_prob_error below 1.05 at equal precision, and tests gen_kl_error against 0.001.",
    bars=(
        Bar("token_mult_prob_error", "token_mult_prob_error", 1.05, least=1.0),
        Bar("k3", "gen_kl_error", 1e-3),
    ),
)
TABLES = {project.name: project for project in (NEMO_RL, PRIME_RL)}


@dataclass(frozen=True)
class Row:
    """One value."""

    name: str
    value: float | None
    interval: str
    noise: str  # the noise of repeats in words that fit a cell, empty if the report has none


def rendered(wanted: MismatchTable, report: "Report") -> str:
    """Return the tables as Markdown. Raises NotFinished if the report has none of the metrics."""
    rows_of = {bar: list(_rows(report, bar, wanted.steps)) for bar in wanted.bars}
    if not any(rows_of.values()):
        names = " or ".join(bar.metric for bar in wanted.bars)
        raise NotFinished(f"this report has no {names}", "rlaudit ablate, compare or curves measure it")
    parts = [_part(bar, rows) for bar, rows in rows_of.items() if rows]
    parts += [escaped(f"Noise of repeats in block {name}: {why}.") for name, why in _floors(report).items()]
    parts.append(escaped(" ".join([wanted.asks, *_missing_steps(report, wanted)])))
    return "\n\n".join(parts) + "\n"


def _part(bar: Bar, rows: list[Row]) -> str:
    share = "share of the room" if bar.least else "ratio"
    header = ["", bar.called, "threshold", share, "95 % interval", "noise of repeats", ""]
    cells = []
    for row in rows:
        # If parity is 1 and not 0, what counts is how much of the room above it is used.
        used = None if row.value is None else (row.value - bar.least) / (bar.threshold - bar.least)
        verdict = "not measured" if used is None else "below" if used < 1 else "**not below**"
        value = "-" if row.value is None else f"{row.value:.4g}"
        ratio = "-" if used is None else f"{used:.2g}"
        cells.append([row.name, value, f"{bar.threshold:g}", ratio, row.interval, row.noise or "-", verdict])
    within = sum(cell[-1] == "below" for cell in cells)
    return f"{table(header, cells, _cell)}\n\n{within} of {len(cells)} below {bar.threshold:g} ({escaped(bar.metric)})."


def _cell(text: str) -> str:
    return text if text == "**not below**" else escaped(text).replace("|", "\\|")


def _floors(report: "Report") -> dict[str, str]:
    floors = {block.name: block.noise_floor.get("k2") for block in report.get("blocks", ())}
    return {name: f"k2 of {floor.value:.2g}, {floor.because}" for name, floor in floors.items() if floor}


def _rows(report: "Report", bar: Bar, steps: int | None) -> Iterator[Row]:
    """Yield steps of a training if the report has curves, then arms, then compared tables."""
    for metric in report["curves"].metrics if "curves" in report else ():
        if metric.canonical == bar.metric:
            yield from _step_rows(metric, steps)
    floors = {block.name: block.noise_floor for block in report.get("blocks", ())}
    for arm in report["arms"]:
        if bar.metric in arm.measurements:
            floor = floors.get(arm.block, {}).get("k2")
            noise = f"k2 {floor.value:.2g}" if floor else ""
            yield _measured(f"{arm.block}: {arm.name}", arm.measurements[bar.metric], noise)
    for compared in report.get("comparisons", ()):
        if bar.metric in compared.measurements:
            yield _measured(compared.name, compared.measurements[bar.metric], "")


def _step_rows(metric: "CurveMetric", steps: int | None) -> Iterator[Row]:
    """Yield the candidate's steps, each with the reference's band: what noise alone does."""
    for point in metric.points[:steps]:
        has_band = point.low is not None and point.high is not None
        band = f"{point.low:.4g} to {point.high:.4g}, the reference's band" if has_band else ""
        noise = band or f"reference {point.reference:.4g}"
        yield Row(f"step {point.step}", point.candidate, "-", noise)


def _measured(name: str, measured: "Measurement", noise: str) -> Row:
    has_interval = measured.low is not None and measured.high is not None
    sign = "" if measured.reliable else " ?"
    interval = (
        f"{measured.low:.4g} to {measured.high:.4g}{sign}, {counted(measured.tokens, 'token')}" if has_interval else "-"
    )
    return Row(name, measured.value, interval, noise)


def _missing_steps(report: "Report", wanted: MismatchTable) -> Iterator[str]:
    if wanted.steps is None:
        return
    if "curves" not in report:
        yield f"Its {wanted.steps} steps are a training's: this is rlaudit {report['command']}, without training."
        return
    called = {bar.metric for bar in wanted.bars}
    logged = [len(metric.points) for metric in report["curves"].metrics if metric.canonical in called]
    if min(logged) < wanted.steps:
        yield f"Both logs have {min(logged)} steps of it."
