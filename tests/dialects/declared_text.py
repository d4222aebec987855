"""A dialect made for a test, and what it reads."""

from pathlib import Path

from packaging.version import Version

from rlaudit.configs.dialects.declared import dialect_at
from rlaudit.configs.source import Source
from rlaudit.settings.rollout_config import RolloutConfig

HEAD = "marks: [sampler]\ntitle: Toy\n\nread: r1\nfiles: {yaml: {}}\nlayouts: {only: {root: sampler}}\n"


def read(tmp_path: Path, said: str, config: str, vllm: str = "0.18.1") -> RolloutConfig:
    """Return the one rollout of a config under the sections of a dialect."""
    path = tmp_path / "toy.yaml"
    path.write_text(HEAD + said)
    file = tmp_path / "run.yaml"
    file.write_text(config)
    (found,) = dialect_at(path).read(Source(str(file), config), Version(vllm))
    return found
