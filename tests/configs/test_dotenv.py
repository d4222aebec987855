"""Environment files beside a compose file decide what its services run with."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.configs.dialects.vllm.serve import DIALECT
from rlaudit.configs.dotenv import variables_of
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Unknown

COMPOSE = """\
services:
  v:
    image: vllm/vllm-openai:v0.8.5
    env_file: [rollout.env, missing.env]
    environment:
      VLLM_USE_V1: ${USE_V1:-1}
    command: --model m --max-model-len ${LEN:-8192} --swap-space ${SWAP:-4}
"""


def compose(folder: Path, **files: str) -> RolloutConfig:
    """The server of COMPOSE, beside environment files (`rollout` is rollout.env, `beside` is .env)."""
    for name, text in files.items():
        (folder / {"beside": ".env"}.get(name, f"{name}.env")).write_text(text)
    path = folder / "compose.yaml"
    path.write_text(COMPOSE)
    (config,) = DIALECT.read(Source(str(path), COMPOSE), Version("0.8.5"))
    return config


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=1", "1"),
        ("export A = 'x # y'", "x # y"),
        ('A="b" # c', "b"),
        ("A=b c # d", "b c"),
        ("A=", ""),
        ("#A=1", None),
    ],
)
def test_a_line_sets_a_variable_as_compose_reads_it(line: str, value: str | None) -> None:
    found = variables_of(Source(".env", f"B=0\r\n{line}\r\n")).get("A")
    assert (found.value if found is not None else None) == value


def test_the_file_of_a_service_sets_its_variables(tmp_path: Path) -> None:
    setting = compose(tmp_path, rollout="VLLM_ATTENTION_BACKEND=XFORMERS\n").environment["VLLM_ATTENTION_BACKEND"]
    assert setting.value == "XFORMERS" and setting.place is not None and setting.place.path.endswith("rollout.env")


def test_what_a_service_says_itself_wins_over_its_file(tmp_path: Path) -> None:
    assert compose(tmp_path, rollout="VLLM_USE_V1=0\n").environment["VLLM_USE_V1"].value == "1"


def test_the_file_beside_fills_in_variables_and_no_default_is_taken_for_them(tmp_path: Path) -> None:
    config = compose(tmp_path, beside="USE_V1=0\nLEN=4096\n")
    assert config.environment["VLLM_USE_V1"].value == "0"
    length = config.engine["max_model_len"].value
    assert isinstance(length, Unknown) and "LEN is 4096" in length.reason
    assert config.engine["swap_space"].value == 4


def test_without_it_defaults_hold(tmp_path: Path) -> None:
    config = compose(tmp_path)
    assert (config.environment["VLLM_USE_V1"].value, config.engine["max_model_len"].value) == ("1", 8192)
