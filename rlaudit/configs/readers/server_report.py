"""What a running vLLM reports: `/server_info` as JSON, and the log lines of its start.

Two kinds of line are read: "non-default args: {...}" (0.9.0 on) or "args: Namespace(...)" (0.8.5) say what was set, and
"Initializing a V1 LLM engine (v0.18.1) with config: ..." says what was resolved. `/server_info` needs
VLLM_SERVER_DEV_MODE=1; `?config_format=json` gives all of it. "Asynchronous scheduling is enabled" is not read: a CPU
platform switches it off after that line (0.18.1 vllm/platforms/cpu.py:176).

For the release that reported them, values are resolved and final. For another one they are not: a value that the old
release chose by itself is no setting. So a value that may not have been set is Unknown, and one that equals a declared
default that has not moved is left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from packaging.version import InvalidVersion, Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.draft import Draft, arriving
from rlaudit.configs.engine_arguments.printed import pairs, printed_value
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node, entries
from rlaudit.settings.place import Place
from rlaudit.settings.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue, known_versions
from rlaudit.vllm.config_objects import ARGUMENTS, RENAMED
from rlaudit.vllm.resolution.engine import has_v0

NAME = "vllm-server-report"
_START = re.compile(
    r"(?P<set>non-default args: \{|\bargs: Namespace\()"
    r"|Initializing a (?P<engine>V[01]) LLM engine \(v(?P<version>[^)\s]{1,60})\) with config: (?:VllmConfig\()?"
    r"|vLLM (?:API )?server version (?P<server>\d[\w.+]{0,40})"
)
_CODE = {".py", ".sh", ".bash", ".slurm", ".sbatch", ".yaml", ".yml", ".toml", ".md", ".rst", ".ipynb"}
_MOST_STARTS = 64
_MOST_PAIRS = 500
_MODEL = {"model", "model_tag"}


@dataclass
class _Start:
    """One engine start of a log: spans of what was set and what was resolved."""

    given: tuple[int, int] | None = None
    resolved: tuple[int, int] | None = None
    engine: str = ""
    version: Version | None = None
    at: int = 0


@dataclass(frozen=True)
class _Pair:
    """A name and its value in a report."""

    name: str
    value: Any
    place: Place
    text: str

    def node(self) -> Node:
        """Return the value as a node, for the model's name."""
        value = self.value if isinstance(self.value, str | Unknown) else str(self.value)
        return Node(value, self.place, None, self.text)


def recognise(source: Source) -> bool:
    """Return whether the file has the lines or the JSON of a report, and is no code."""
    if source.suffix in _CODE:
        return False
    try:
        return _server_info(source) is not None if source.suffix == ".json" else bool(_starts(source.text))
    except (ValueError, RecursionError):
        return False


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """Return every engine that the report is about."""
    if source.suffix == ".json":
        root = _server_info(source)
        return () if root is None else (_from_json(source, root, vllm),)
    index = LineIndex(source.text, source.path)
    return tuple(_from_log(source, start, index, vllm) for start in _starts(source.text))


def _server_info(source: Source) -> Node | None:
    if "vllm_config" not in source.text or not source.plain_yaml:
        return None
    root = source.plain_yaml[0]
    config = root.get("vllm_config")
    is_report = config is not None and (isinstance(config.value, str) or config.get("model_config") is not None)
    return root if is_report else None


def _starts(text: str) -> list[_Start]:
    """Return the engine starts of a log, in order. A worker that repeats the line of its engine is the same start."""
    starts: list[_Start] = []
    version: Version | None = None
    for match in _START.finditer(text):
        newline = text.find("\n", match.end())
        end = len(text) if newline < 0 else newline
        if match.group("server"):
            version = version_of(match.group("server"))
        elif match.group("set"):
            starts.append(_Start(given=(match.end(), end), version=version, at=match.start()))
        elif starts and starts[-1].resolved is None:
            starts[-1].resolved, starts[-1].engine = (match.end(), end), match.group("engine")
            starts[-1].version = version_of(match.group("version")) or version
        elif not starts or not _repeats(text, starts[-1].resolved, match.end(), end):
            release = version_of(match.group("version")) or version
            starts.append(_Start(None, (match.end(), end), match.group("engine"), release, match.start()))
        if len(starts) >= _MOST_STARTS:
            break
    return starts


def _repeats(text: str, before: tuple[int, int] | None, start: int, end: int) -> bool:
    return before is not None and text[before[0] : before[1]] == text[start:end]


def _from_log(source: Source, start: _Start, index: LineIndex, vllm: Version) -> RolloutConfig:
    draft = Draft(NAME, source.path)
    given_pairs, resolved_pairs = (_printed(source.text, span, index) for span in (start.given, start.resolved))
    _given(draft, given_pairs, start.version, vllm)
    _resolved(draft, resolved_pairs, start.version, vllm, was_set=start.given is not None)
    models = [pair for pair in (*given_pairs, *resolved_pairs) if pair.name in _MODEL and pair.value is not None]
    place = index.place(start.at, start.at, "")
    if start.engine and has_v0(vllm) and start.version in {None, vllm}:
        note = f"the log says that the {start.engine} engine started"
        draft.environment["VLLM_USE_V1"] = Setting("VLLM_USE_V1", start.engine[1], None, Origin.ENGINE, place, note)
    if start.given is None:
        draft.not_seen.append("it is not known which of the values were set: the log has no line of the arguments")
    draft.not_seen += ["environment variables were not seen: the log does not print them", _NO_SAMPLING]
    return draft.done(model=models[0].node() if models else None, place=place)


def _printed(text: str, span: tuple[int, int] | None, index: LineIndex) -> list[_Pair]:
    """Return the pairs of a span of the log."""
    spans = islice(pairs(text, *span), _MOST_PAIRS) if span is not None else ()
    return [
        _Pair(name, printed_value(text[first:last]), index.place(first, last, name), text[first:last])
        for name, first, last in spans
    ]


def _given(draft: Draft, printed: list[_Pair], observed: Version | None, vllm: Version) -> None:
    """Take what was set. A Namespace prints every argument, so one at its default does not count as set."""
    before = (catalogue_of(observed) or Catalogue.at(vllm)).engine
    after = Catalogue.at(vllm).engine
    for pair in printed:
        declared = before.get(pair.name)
        if pair.name == "model" or (declared is None and pair.name not in after):
            continue
        if declared is None or pair.value != declared.default:
            written = pair.text if isinstance(pair.value, Unknown) else pair.value
            draft.engine[pair.name] = Setting(pair.name, pair.value, written, Origin.FILE, pair.place)


_NO_SAMPLING = "sampling parameters were not seen: each request sends its own"


def _resolved(draft: Draft, resolved: list[_Pair], observed: Version | None, vllm: Version, *, was_set: bool) -> None:
    """Take resolved values: final for the release that reported them, skipped for another if what was set is known."""
    same_release = observed is None or observed == vllm
    if was_set and not same_release:
        return
    before, after = catalogue_of(observed), Catalogue.at(vllm)
    for pair in resolved:
        setting = reported(pair.name, pair.value, pair.place, before, after)
        if setting is None or setting.name == "model":
            continue
        earlier = draft.engine.get(setting.name)
        if earlier is not None and earlier.value == setting.value:
            continue
        if earlier is not None and setting.known:
            note = f"set to {earlier.written!r}, and resolved so"
            setting = Setting(setting.name, setting.value, earlier.written, Origin.FILE, earlier.place, note)
        draft.engine[setting.name] = setting


def _from_json(source: Source, root: Node, vllm: Version) -> RolloutConfig:
    draft = Draft(NAME, source.path)
    config = root.get("vllm_config") or root
    version = root.get("system_env", "vllm_version") or config.get("vllm_version")
    observed = version_of(version.value) if version is not None else None
    resolved = list(_of_text(config) if isinstance(config.value, str) else _of_sections(config))
    models = [pair for pair in resolved if pair.name == "model" and pair.value is not None]
    _resolved(draft, resolved, observed, vllm, was_set=False)
    variables = root.get("vllm_env")
    for name, node in entries(variables):
        if observed is None or observed == vllm:
            note = "as the server reported it, set or not"
            text = None if node.value is None else str(node.plain())
            draft.environment[name] = Setting(name, text, node.plain(), Origin.ENGINE, node.place, note)
    if observed is not None and observed != vllm:
        draft.not_seen.append(
            f"environment variables were not read: vLLM {observed} does not report which of them were set"
        )
    draft.not_seen.append(_NO_SAMPLING)
    return draft.done(model=models[0].node() if models else None, place=config.key or config.place)


def _of_text(config: Node) -> Iterator[_Pair]:
    """Yield the pairs of the printed config of `config_format=text`."""
    text = str(config.value)
    for name, first, last in islice(pairs(text, 0, len(text)), _MOST_PAIRS):
        yield _Pair(name, printed_value(text[first:last]), config.place, text[first:last])


def _of_sections(config: Node) -> Iterator[_Pair]:
    """Yield the fields of `model_config`, `cache_config`, ..., and the config objects that are arguments themselves."""
    for section, node in config.items():
        yield _Pair(section, arriving(node), node.place, node.text)
        for name, child in node.items() if section not in ARGUMENTS else ():
            value = arriving(child)
            dtype = isinstance(value, str) and value.startswith("torch.")
            yield _Pair(name, value.removeprefix("torch.") if dtype else value, child.place, child.text)


def catalogue_of(observed: Version | None) -> Catalogue | None:
    """Return the catalogue of the release that reported, None if it is older than all that are catalogued."""
    return Catalogue.at(observed) if observed is not None and observed >= known_versions()[0] else None


def reported(name: str, value: Any, place: Place, observed: Catalogue | None, vllm: Catalogue) -> Setting | None:
    """Return a reported value as a setting; None if it says nothing about `vllm`."""
    name = RENAMED.get(name, name)
    if observed is None or observed.asked == vllm.asked:
        if name not in vllm.engine:
            return None
        return Setting(name, value, None, Origin.ENGINE, place, f"as vLLM {vllm.asked} reported it when it ran")
    before, after = observed.engine.get(name), vllm.engine.get(name)
    if before is None or isinstance(value, Unknown):
        return None
    if before.default == value and (after is None or after.default == before.default):
        return None
    if isinstance(before.default, bool | int | float) and before.default != value:
        return Setting(
            name, value, value, Origin.FILE, place, f"reported by vLLM {observed.asked}, whose default is another"
        )
    why = f"vLLM {observed.asked} reported {value!r}, not whether that was set or was its own choice"
    return Setting(name, Unknown(why), value, Origin.FILE, place)


def version_of(text: object) -> Version | None:
    """Return a release as a report names it (`0.18.1`, `0.18.1+cpu`); None for a build without one."""
    try:
        version = Version(Version(str(text)).public)
    except InvalidVersion:
        return None
    return version if version > Version("0.1") else None


DIALECT = Dialect(NAME, "report of a running vLLM server", 0, recognise, read)
