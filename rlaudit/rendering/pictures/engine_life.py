"""The life of recorded engines over time: which weights they had, what was done to them, and what they sampled."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlaudit.recorder.engine_life import Bin, Mark
from rlaudit.rendering.drawing.axes import LABEL, SMALL, set_ticks, short
from rlaudit.rendering.drawing.styles import BAND, CANDIDATE, GRID, INK, MUTED, OTHER, PARITY, REFERENCE
from rlaudit.rendering.picture import RECORDING, WIDE, Missing, Picture, PictureKind, Table
from rlaudit.report.parts.engine_life import EngineLife

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rlaudit.report.report import Report

TITLE = "The engine's life"
NOTHING = "no request and no step of an engine was recorded"
UPDATE, PAUSE, SLEEP = "weight update", "pause", "sleep"
RESET, REFUSED = "prefix cache reset", "prefix cache reset refused"
# What is drawn as a bar; the others are signs.
SPANS = {UPDATE: CANDIDATE, PAUSE: MUTED, SLEEP: OTHER}
SIGNS = {RESET: (PARITY, "v"), REFUSED: (CANDIDATE, "x")}
LANES = (("weights", (UPDATE,)), ("paused, asleep", (PAUSE, SLEEP)), ("cache resets", (RESET, REFUSED)))
# Pixels.
LEFT, RIGHT, TOP, BOTTOM = 104.0, 12.0, 34.0, 46.0
LANE, GAP, NAME, BETWEEN = 18.0, 20.0, 22.0, 22.0
LEAST = 1.6  # the least width of a bar
MOST_DENSE = 4.0  # the least distance between lines through a quantity
LEAST_LABEL = 20.0  # the least width of a version's band for its number
MOST_ROWS = 500
UNITS = ((7200.0, 3600.0, "hours"), (180.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))


@dataclass(frozen=True)
class Track:
    """A quantity over time."""

    name: str
    height: float  # in pixels
    most: float  # the least upper end of its axis
    colour: str
    of: Callable[[Bin, float], float | None]


TRACKS = (
    Track("tokens per second", 62, 0.0, REFERENCE, lambda time_bin, width: time_bin.tokens / width),
    Track("cached share of prompts", 40, 1.0, PARITY, lambda time_bin, width: time_bin.cached),
)


def pictures(report: "Report") -> Sequence[Picture | Missing]:
    """Return one picture, with a row for each engine."""
    lives = report["public_recording"].engines
    if not lives:
        return [Missing(TITLE, NOTHING)]
    height = TOP + BOTTOM + sum(_height(life) for life in lives) + BETWEEN * (len(lives) - 1)
    return [
        Picture(
            "engine-life",
            TITLE if len(lives) == 1 else "The engines' lives",
            _caption(lives),
            Table(["second", *(["engine"] if len(lives) > 1 else []), "what", "took (s)"], _rows(lives)),
            round(height),
            lambda figure: _draw(figure, lives),
            width=WIDE,
        )
    ]


def _known_tracks(life: EngineLife) -> list[Track]:
    width = _width(life)
    return [track for track in TRACKS if any(track.of(time_bin, width) is not None for time_bin in life.bins)]


def _width(life: EngineLife) -> float:
    return life.seconds / len(life.bins) or 1.0


def _lanes(life: EngineLife) -> list[tuple[str, tuple[str, ...]]]:
    done = {mark.what for mark in life.marks}
    return [lane for lane in LANES if lane[0] == "weights" or not done.isdisjoint(lane[1])]


def _height(life: EngineLife) -> float:
    tracks = sum(track.height + GAP for track in _known_tracks(life))
    return (NAME if life.name else 0) + LANE * len(_lanes(life)) + tracks


def _caption(lives: Sequence[EngineLife]) -> str:
    """Say what is drawn, and what is unknown."""
    sentences = ["Numbers in the band of weights are updates so far."]
    if all(time_bin.cached is None for life in lives for time_bin in life.bins):
        sentences.append("No cached share: this release does not report it, or no prompt was kept.")
    if any(mark.end is None for life in lives for mark in life.marks if mark.what in SPANS):
        sentences.append("A bar that reaches the right edge was not seen to end.")
    return " ".join(sentences)


def _rows(lives: Sequence[EngineLife]) -> list[list[str]]:
    rows = [
        [
            f"{mark.begin:.2f}",
            *([life.name] if len(lives) > 1 else []),
            f"{mark.what}{' (failed)' if mark.failed else ''}",
            "" if mark.end is None else f"{mark.end - mark.begin:.3f}",
        ]
        for life in lives
        for mark in life.marks
    ]
    omitted = len(rows) - MOST_ROWS
    return rows if omitted <= 0 else [*rows[:MOST_ROWS], [f"and {omitted} more"]]


def _draw(figure: "Figure", lives: Sequence[EngineLife]) -> None:
    seconds = max(life.seconds for life in lives) or 1.0
    unit, unit_name = next((unit, name) for least, unit, name in UNITS if seconds >= least)
    top = TOP
    last = None
    for number, life in enumerate(lives):
        top += BETWEEN if number else 0
        if life.name:
            width, height = (size * 72 for size in figure.get_size_inches())
            figure.text(LEFT / width, 1 - (top + 12) / height, life.name, color=INK, fontsize=LABEL, ha="left",
                        weight="bold")  # fmt: skip
            top += NAME
        lanes = _lanes(life)
        last = _axes(figure, top, LANE * len(lanes), seconds)
        _draw_lanes(last, life, lanes, seconds)
        top += LANE * len(lanes)
        for track in _known_tracks(life):
            top += GAP
            last = _axes(figure, top, track.height, seconds)
            _draw_track(last, life, track)
            top += track.height
    if last is not None:
        _draw_time(last, seconds, unit, unit_name)
    _draw_key(figure, lives)


def _axes(figure: "Figure", top: float, height: float, seconds: float) -> "Axes":
    width, whole = (size * 72 for size in figure.get_size_inches())
    bounds = (LEFT / width, 1 - (top + height) / whole, (width - LEFT - RIGHT) / width, height / whole)
    axes = figure.add_axes(bounds, facecolor="none")
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set(color=MUTED, linewidth=0.8)
    axes.tick_params(axis="both", length=0, colors=MUTED, labelcolor=INK, labelsize=SMALL, labelbottom=False)
    axes.set_xlim(0, seconds)
    axes.set_axisbelow(True)
    return axes


def _draw_lanes(axes: "Axes", life: EngineLife, lanes: Sequence[tuple[str, tuple[str, ...]]], seconds: float) -> None:
    axes.set_ylim(len(lanes), 0)
    axes.spines["bottom"].set_visible(False)
    set_ticks(axes.yaxis, [number + 0.5 for number in range(len(lanes))], [name for name, _ in lanes])
    pixels = float(axes.get_window_extent().width) / seconds
    _draw_versions(axes, life, seconds, pixels)
    for lane, (_, kinds) in enumerate(lanes):
        for kind in kinds:
            marks = [mark for mark in life.marks if mark.what == kind]
            if kind in SPANS:
                low, high = (0.06, 0.94) if kind == UPDATE else (0.2, 0.8)
                _bars(axes, [(span, lane + low, lane + high) for span in _spans(marks, seconds, pixels)], SPANS[kind])
                failed = [mark.begin for mark in marks if mark.failed]
                axes.plot(failed, [lane + 0.5] * len(failed), "x", color=INK, markersize=6, markeredgewidth=1.4)
            else:
                colour, sign = SIGNS[kind]
                begins = sorted({round(mark.begin * pixels) / pixels for mark in marks})
                axes.plot(begins, [lane + 0.5] * len(begins), sign, color=colour, markersize=5, linestyle="none")


def _draw_versions(axes: "Axes", life: EngineLife, seconds: float, pixels: float) -> None:
    """Draw a band for every other version, and its number if the band is wide enough."""
    ends = [mark.end for mark in life.marks if mark.what == UPDATE and mark.end is not None]
    edges = [0.0, *sorted(ends), seconds]
    bands = []
    for version in range(len(edges) - 1):
        begin, end = edges[version], edges[version + 1]
        if version % 2 == 0:
            bands.append(((begin, end), 0.06, 0.94))
        if (end - begin) * pixels >= LEAST_LABEL:
            axes.text((begin + end) / 2, 0.52, str(version), color=INK, fontsize=SMALL, ha="center", va="center")
    _bars(axes, bands if len(bands) * 3 < pixels * seconds else [((0.0, seconds), 0.06, 0.94)], BAND)


def _spans(marks: Sequence[Mark], seconds: float, pixels: float) -> list[tuple[float, float]]:
    """Return where bars begin and end, with bars that touch as one."""
    spans: list[tuple[float, float]] = []
    for mark in marks:
        begin, end = mark.begin, seconds if mark.end is None else mark.end
        end = max(end, begin + LEAST / pixels)
        if spans and begin - spans[-1][1] < 0.4 / pixels:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((begin, end))
    return spans


def _bars(axes: "Axes", bars: Sequence[tuple[tuple[float, float], float, float]], colour: str) -> None:
    """Draw rectangles as one path. bars: ((begin, end), lower edge, upper edge)."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    vertices, codes = [], []
    for (begin, end), low, high in bars:
        vertices += [(begin, low), (end, low), (end, high), (begin, high), (begin, low)]
        codes += [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    if vertices:
        axes.add_patch(PathPatch(Path(vertices, codes), facecolor=colour, edgecolor="none", linewidth=0))


def _draw_track(axes: "Axes", life: EngineLife, track: Track) -> None:
    width = _width(life)
    values = [(time_bin.begin, value) for time_bin in life.bins if (value := track.of(time_bin, width)) is not None]
    most = max([track.most, *(value for _, value in values)]) or 1.0
    axes.set_ylim(0, most * 1.06)
    set_ticks(axes.yaxis, [0.0, most], ["0", short(float(f"{most:.2g}"))])
    axes.grid(True, axis="y", color=GRID, linewidth=0.8)
    _draw_updates(axes, life, most * 1.06)
    _bars(axes, [((begin, begin + width), 0.0, value) for begin, value in values if value], track.colour)
    # If something is unknown, a known 0 is drawn as a thin line, to tell it from what is unknown.
    if len(values) < len(life.bins):
        least = 2.5 * most / track.height
        _bars(axes, [((begin, begin + width), 0.0, least) for begin, _ in values], track.colour)
    axes.annotate(track.name, (0, 1), xytext=(2, 1), xycoords="axes fraction", textcoords="offset points",
                  color=MUTED, fontsize=SMALL, ha="left", va="bottom")  # fmt: skip


def _draw_updates(axes: "Axes", life: EngineLife, high: float) -> None:
    """Draw a thin line through a quantity at each weight update."""
    pixel = life.seconds / float(axes.get_window_extent().width)
    lines: list[float] = []
    for begin in (mark.begin for mark in life.marks if mark.what == UPDATE):
        if not lines or begin - lines[-1] >= MOST_DENSE * pixel:
            lines.append(begin)
    _bars(axes, [((begin, begin + 0.6 * pixel), 0.0, high) for begin in lines], BAND)


def _draw_time(axes: "Axes", seconds: float, unit: float, name: str) -> None:
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    steps = (factor * 10.0**size for size in range(-9, 9) for factor in (1, 2, 5))
    axes.xaxis.set_major_locator(MultipleLocator(unit * next(step for step in steps if seconds / unit / step <= 10)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda second, _: short(round(second / unit, 6))))
    axes.tick_params(axis="x", labelbottom=True, length=3, width=0.8, pad=4)
    axes.set_xlabel(f"{name} since the recording began", color=INK, fontsize=LABEL, labelpad=5)


def _draw_key(figure: "Figure", lives: Sequence[EngineLife]) -> None:
    from matplotlib.artist import Artist
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    done = {mark.what for life in lives for mark in life.marks}
    bars = ((name, Patch(facecolor=colour, edgecolor="none")) for name, colour in SPANS.items() if name in done)
    entries: list[tuple[str, Artist]] = list(bars)
    signs = [(name, colour, sign) for name, (colour, sign) in SIGNS.items() if name in done]
    if any(mark.failed for life in lives for mark in life.marks):
        signs.append(("failed", INK, "x"))
    entries += [
        (name, Line2D([], [], color=colour, marker=sign, linestyle="none", markersize=5))
        for name, colour, sign in signs
    ]
    if entries:
        names, artists = zip(*entries, strict=True)
        width, height = (size * 72 for size in figure.get_size_inches())
        figure.legend(
            artists, names, loc="upper left", bbox_to_anchor=((LEFT - 4) / width, 1 - 2 / height), ncols=len(entries),
            frameon=False, fontsize=SMALL, labelcolor=INK, handlelength=1.2, handletextpad=0.5, columnspacing=1.4,
            borderaxespad=0.0, borderpad=0.1,
        )  # fmt: skip


PICTURES = PictureKind("engine-life", 5, frozenset({RECORDING}), pictures)
