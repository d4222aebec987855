"""A dialect and four rules made for tests, so that what is tested is the inspection and not somebody's rule.

toy:
  engine: {enable_prefix_caching: false}
  sampling: {temperature: 0.7}
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from rlaudit.cli.app import run
from rlaudit.configs.dialect import Dialect
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node
from rlaudit.inspection import inspect, read_configs, requested
from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.settings.place import Edit
from rlaudit.settings.rollout_config import Loss, Lost, Origin, RolloutConfig, Setting
from rlaudit.severity import Severity
from rlaudit.vllm.milestones import PROCESSED_IS_FINAL

V0, V1 = "0.8.5", "0.18.1"
PLAIN = "toy:\n  engine:\n    seed: 1  # keep\n  sampling:\n    temperature: 0.7\n"


def _recognise(source: Source) -> bool:
    return any(document.get("toy") is not None for document in source.yaml)


def _read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    return tuple(_config(source, document.get("toy")) for document in source.yaml if document.get("toy") is not None)


def _config(source: Source, toy: Node | None) -> RolloutConfig:
    assert toy is not None
    engine, sampling = toy.get("engine"), toy.get("sampling")
    return RolloutConfig(
        framework="toy",
        path=source.path,
        engine=_settings(engine),
        sampling=_settings(sampling),
        # Toys ran V0, whose logprobs are processed ones: what a safe fix restores.
        environment={"VLLM_USE_V1": Setting("VLLM_USE_V1", "0", None, Origin.FRAMEWORK)},
        lost=tuple(
            Lost(name, node.value, node.place, Loss.UNKNOWN_KEY, "toys have no such key")
            for name, node in toy.items()
            if name not in {"engine", "sampling"}
        ),
        place=toy.place,
        not_seen=("whether toys train",),
        write=lambda name, value: _write(source, engine, name, value),
    )


def _settings(node: Node | None) -> dict[str, Setting]:
    return {
        name: Setting(name, child.value, child.value, Origin.FILE, child.place)
        for name, child in (node.items() if node is not None else ())
    }


def _write(source: Source, engine: Node | None, name: str, value: Any) -> tuple[Edit, ...] | None:
    if engine is None or not isinstance(engine.value, dict):
        return None
    text = {True: "true", False: "false"}.get(value, str(value))
    there = engine.get(name)
    if there is not None:
        return (Edit(source.path, there.place.start, there.place.end, text),)
    key = next(iter(engine.value.values())).key
    assert key is not None
    return (Edit(source.path, key.start, key.start, f"{name}: {text}\n    "),)


def _raw(audit: Audit) -> Iterator[Finding]:
    """Raw logprobs, where the version before returned others."""
    if audit.crosses(PROCESSED_IS_FINAL) and audit.after.value("logprobs_mode") == "raw_logprobs":
        fix = audit.fix("return processed logprobs", True, logprobs_mode="processed_logprobs")
        yield RAW.finding(audit, Severity.ERROR, "logprobs_mode", "Raw logprobs, 100 % of them: set it.", fix, "ablate")


def _caching(audit: Audit) -> Iterator[Finding]:
    said = audit.config.engine.get("enable_prefix_caching")
    if said is not None and said.value is True:
        fix = audit.fix("switch prefix caching off", False, enable_prefix_caching=False)
        yield CACHING.finding(audit, Severity.WARNING, "enable_prefix_caching", "Prefix caching is on.", fix)


def _warm(audit: Audit) -> Iterator[Finding]:
    if audit.after.sampling("temperature") != 1.0:
        yield WARM.finding(audit, Severity.NOTE, "temperature", f"T is {audit.after.sampling('temperature')}.")


def _failing(audit: Audit) -> Iterator[Finding]:
    seed = audit.config.engine.get("seed")
    if seed is not None and seed.value == 13:
        raise KeyError("thirteen")
    yield from ()


RAW = Rule("toy-raw", Layer.SEMANTIC, _raw)
CACHING = Rule("toy-caching", Layer.INFERENCE_PATH, _caching)
WARM = Rule("toy-warm", Layer.SEMANTIC, _warm)
FAILING = Rule("toy-failing", Layer.OBJECTIVE, _failing)
RULES = {rule.name: rule for rule in (RAW, CACHING, WARM, FAILING)}
TOY = Dialect("toy", "Toy", 10, _recognise, _read)


def install(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Only toys are known, and `folder` is a repository and the working directory."""
    for module in (read_configs, inspect, requested):
        monkeypatch.setattr(module, "known_dialects", lambda _named=(): {"toy": TOY})
    for module in (inspect, requested):
        monkeypatch.setattr(module, "known_rules", lambda: RULES)
    (folder / ".git").mkdir()
    monkeypatch.chdir(folder)


class Desk:
    """A repository to inspect in, with the command at hand."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.out = self.err = ""

    def file(self, name: str, text: str = PLAIN) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def inspect(self, *words: str, migrate: bool = True) -> int:
        """The exit code; what was printed is in `out` and `err`."""
        sides = ("--from", V0, "--to", V1) if migrate else ()
        code = run(["inspect", *words, *sides])
        self.out, self.err = self._capsys.readouterr()
        return code

    def rules(self, *words: str, migrate: bool = True) -> list[str]:
        """The findings that count, as `line rule`."""
        self.inspect(*words, "--output", "concise", migrate=migrate)
        return [f"{line.split(':')[1]} {line.split()[2]}" for line in self.out.splitlines()]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    """An empty repository, the working directory, in which only toys are known."""
    install(monkeypatch, tmp_path)
    return Desk(tmp_path, capsys)
