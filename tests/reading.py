"""A file in, its rollout configs out."""

from collections.abc import Mapping
from pathlib import Path

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.source import Source
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


def read_one(framework: Dialect, text: str, vllm: str, path: str = "run.yaml") -> RolloutConfig:
    source = source_of(text, path)
    assert framework.recognise(source)
    (config,) = framework.read(source, Version(vllm))
    return config


def read_file(framework: Dialect, path: Path, vllm: str) -> RolloutConfig:
    return read_one(framework, path.read_text(), vllm, str(path))
