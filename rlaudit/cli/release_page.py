"""`rlaudit explain 0.26.0`: what a release decides by itself, what moved in it, its known defects, and its figures."""

from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from rlaudit.advisories import crossed, known_advisories
from rlaudit.documents.vllm_alone import text_of
from rlaudit.errors import UsageError
from rlaudit.report.figures import interval
from rlaudit.report.parts.releases import Cell
from rlaudit.settings.rollout_config import RolloutConfig
from rlaudit.vllm.catalogue import Catalogue, known_versions
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.measured import measured
from rlaudit.vllm.moved import WHY, Change, Part, moved
from rlaudit.vllm.resolve import resolution_rules, resolve


def release_page(name: str) -> str | None:
    """Return the page of a catalogued release; None for what is no release. Raises UsageError for another release."""
    try:
        version = Version(name)
    except InvalidVersion:
        return None
    if version not in known_versions():
        known = known_versions()
        raise UsageError(
            f"vLLM {version} is not among the releases that rlaudit knows, {known[0]} to {known[-1]}",
            "`rlaudit list versions` prints them.",
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
    """What decides logprobs, with vLLM's reason."""
    resolution = resolve(RolloutConfig("vllm", ""), Catalogue.at(version), machine)
    rules = resolution_rules()
    settings = [resolution.setting(name) for name in WHY if name in rules]
    return [f"{one.name}: {text_of(one.value)} ({one.note})" for one in settings if one.value is not None]


def _since(version: Version, machine: Machine) -> Iterator[tuple[str, list[str]]]:
    """What moved since the release before, as far as it can move logprobs, and the defects that came and went."""
    older = [one for one in known_versions() if one < version]
    if not older:
        return
    before = older[-1]
    values = [one for one in moved(before, version, machine) if one.change is Change.VALUE]
    telling = [one for one in values if one.part is Part.RESOLVED or one.why]
    yield (
        f"What moved since {before} (rlaudit inspect --defaults --from {before} --to {version} has all)",
        [f"{one.name}: {text_of(one.before)} -> {text_of(one.after)}" for one in telling]
        or ["nothing that decides logprobs"],
    )
    window = crossed(before, version)
    yield f"Defects that {before} had and this release has not", [*window.left]
    yield f"Defects that {before} had not", [*window.entered]


def _defects(version: Version) -> list[str]:
    return [f"{name}: {one.sentence}" for name, one in known_advisories().items() if one.window.holds(version)]


def _figures(version: Version) -> Iterator[tuple[str, list[str]]]:
    found = measured(version)
    if found is not None:
        title = f"Measured on {found.date} with the CPU build of a third party ({found.on})"
        yield (
            title,
            [
                f"{found.titles[name]}: {interval(cell) if cell.word is None else cell.word}"
                for name, cell in ((name, Cell(**one)) for name, one in found.cells.items())
                # What is of an arm; the settings that it loaded are said above.
                if "/" in name
            ],
        )
