"""What the tests of the readers share: a file in, its rollout configs out, and edits carried out on its text."""

from collections.abc import Mapping
from pathlib import Path

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.spelling import apply
from rlaudit.settings.rollout_config import RolloutConfig


def put(root: Path, files: Mapping[str, str]) -> Path:
    """Write files by their paths below a folder, and return it."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def source_of(text: str, path: str = "run.yaml") -> Source:
    return Source(path, text)


def read_all(framework: Dialect, text: str, vllm: str, path: str = "run.yaml") -> tuple[RolloutConfig, ...]:
    source = source_of(text, path)
    assert framework.recognise(source)
    return framework.read(source, Version(vllm))


def read_one(framework: Dialect, text: str, vllm: str, path: str = "run.yaml") -> RolloutConfig:
    (config,) = read_all(framework, text, vllm, path)
    return config


def read_file(framework: Dialect, path: Path, vllm: str) -> RolloutConfig:
    (config,) = read_all(framework, path.read_text(), vllm, str(path))
    return config


def rewritten(config: RolloutConfig, text: str, name: str, value: object) -> str:
    edits = config.write(name, value)
    assert edits is not None
    return apply(text, edits)


def lost_names(config: RolloutConfig) -> set[str]:
    return {lost.name for lost in config.lost}
