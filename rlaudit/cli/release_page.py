"""`rlaudit explain 0.26.0`: what a release decides by itself, what moved in it, its known defects, and its figures."""

from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from rlaudit.cli.move_page import move_page
from rlaudit.errors import UsageError
from rlaudit.report.figures import interval
from rlaudit.report.parts.releases import Cell
from rlaudit.rules.advisories import crossed, defects_of
from rlaudit.rules.advisories.advisory import VLLM
from rlaudit.settings.rollout_config import RolloutConfig
from rlaudit.vllm.catalogue import Catalogue, known_versions
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.measured import RUNS, measured_by_all
from rlaudit.vllm.moved import WHY, moved_and_decides, text_of
from rlaudit.vllm.resolve import resolution_rules, resolve


def release_page(name: str) -> str | None:
    """Return the page of a release, or of a move as `0.8.5..0.18.1`; None if `name` is neither.

    Raises UsageError for a release not catalogued.
    """
    old, dots, new = name.partition("..")
    if dots:
        return move_page(old, new, Machine())
    try:
        version = Version(name)
    except InvalidVersion:
        return None
    releases = known_versions()
    if version not in releases:
        raise UsageError(
            f"vLLM {version} is not among the releases that rlaudit knows, {releases[0]} to {releases[-1]}",
            "see: rlaudit list versions",
        )
    machine = Machine()
    parts = [
        (f"What an API server runs with if nothing is set, on {machine.name}", _decided(version, machine)),
        *_since(version, machine),
        ("Known defects (rlaudit explain NAME)", _defects(version)),
        *_figures(version),
    ]
    shown = [f"{title}\n" + "\n".join(f"  {line}" for line in lines) for title, lines in parts if lines]
    return f"vLLM {version}\n\n" + "\n\n".join(shown)


def _decided(version: Version, machine: Machine) -> list[str]:
    """Return the resolved settings that decide logprobs, with vLLM's reason."""
    resolution = resolve(RolloutConfig("vllm", ""), Catalogue.at(version), machine)
    rules = resolution_rules()
    settings = [resolution.setting(name) for name in WHY if name in rules]
    return [
        f"{setting.name}: {text_of(setting.value)}; {setting.note}" for setting in settings if setting.value is not None
    ]


def _since(version: Version, machine: Machine) -> Iterator[tuple[str, list[str]]]:
    """Yield the moves since the previous release that can change logprobs, and the defects that came and went."""
    older = [release for release in known_versions() if release < version]
    if not older:
        return
    before = older[-1]
    moves = moved_and_decides(before, version, machine)
    yield (
        f"What moved since {before} (all of it: rlaudit explain {before}..{version})",
        [f"{move.name}: {text_of(move.before)} -> {text_of(move.after)}" for move in moves]
        or ["nothing that decides logprobs"],
    )
    window = crossed(before, version)
    yield f"Fixed defects of {before}", [*window.left]
    yield f"New defects since {before}", [*window.entered]


def _defects(version: Version) -> list[str]:
    return [
        f"{name}: {advisory.sentence}" for name, advisory in defects_of(VLLM).items() if advisory.window.holds(version)
    ]


def _figures(version: Version) -> Iterator[tuple[str, list[str]]]:
    for platform in RUNS:
        builds = " with the CPU build of a third party" if platform == "cpu" else ""
        for measurement in measured_by_all(version, platform):
            # Names with a slash are figures of an arm; the others are settings that it loaded, which stand above.
            by_arm: dict[str, list[str]] = {}
            for name, fields in measurement.cells.items():
                arm, _, figure = measurement.titles[name].rpartition(": ")
                cell = Cell(**fields)
                if "/" in name:
                    by_arm.setdefault(arm, []).append(f"{figure} = {cell.word or interval(cell)}")
            lines = [f"{arm}: {'; '.join(figures)}" for arm, figures in by_arm.items()]
            yield f"Measured on {measurement.date}{builds} ({measurement.on}): block, engine, figures", lines
