"""A config that inherits its engine is read with its parents."""

from pathlib import Path

import pytest
from packaging.version import Version
from reading import put

from rlaudit.configs.source import Source
from rlaudit.inspection.read_configs import known_dialects, recognise

NEMO = "policy:\n  generation:\n    backend: vllm\n    vllm_cfg: {tensor_parallel_size: 2}\n    vllm_kwargs: {}\n"
VERL = "actor_rollout_ref:\n  rollout:\n    name: vllm\n    gpu_memory_utilization: 0.5\n"
PIPELINE = "vllm_config:\n  vllm_kwargs:\n    seed: 3\n"
ROLL = "actor_infer:\n  strategy_args:\n    strategy_name: vllm\n    strategy_config: {seed: 3}\n"


@pytest.mark.parametrize(
    ("base", "overlay", "name"),
    [
        (NEMO, "defaults: base.yaml\ngrpo: {num_steps: 3}\n", "nemo_rl"),
        (VERL, "defaults:\n  - base\n  - _self_\ntrainer: {nnodes: 2}\n", "verl"),
        (PIPELINE, "defaults:\n  - base\nfinetune: {seed: 1}\n", "pipelinerl"),
        (ROLL, "defaults:\n  - base\nexp_name: mine\n", "roll"),
    ],
)
def test_an_overlay_without_a_word_of_the_engine_is_read_with_what_it_inherits(
    base: str, overlay: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / "base.yaml").write_text(base)
    path = tmp_path / "mine.yaml"
    path.write_text(overlay)
    source = Source(str(path), overlay)
    (dialect, *_), bugs = recognise(source, known_dialects())
    assert (dialect.name, bugs) == (name, ())
    (config,) = dialect.read(source, Version("0.18.1"))
    assert str(tmp_path / "base.yaml") in config.parts
    assert config.place is not None and config.place.path == str(path)
    assert config.write("seed", 1) is None
    assert not recognise(Source("elsewhere/mine.yaml", overlay), known_dialects())[0]


def test_a_group_of_hydra_stands_where_its_package_says(tmp_path: Path) -> None:
    (tmp_path / "rollout").mkdir()
    (tmp_path / "rollout" / "fast.yaml").write_text("name: vllm\ngpu_memory_utilization: 0.5\nenforce_eager: true\n")
    text = "defaults:\n  - rollout@actor_rollout_ref.rollout: fast\n  - _self_\n"
    text += "actor_rollout_ref:\n  hybrid_engine: true\n"
    source = Source(str(tmp_path / "ppo.yaml"), text)
    (dialect, *_), _ = recognise(source, known_dialects())
    (config,) = dialect.read(source, Version("0.18.1"))
    assert config.engine["enforce_eager"].value is True


def test_a_config_named_from_where_the_script_is_started_is_found_from_the_root_of_the_repository(
    tmp_path: Path,
) -> None:
    files = {
        ".git/HEAD": "",
        "own/__init__.py": "",
        "own/main.py": "import hydra\n\n@hydra.main(config_path='conf', config_name='x')\ndef main(config): ...\n",
        "config/mine.yaml": "actor_rollout_ref:\n  rollout: {name: vllm, temperature: 0.6}\n",
        "examples/run.sh": 'HERE="$(pwd)"\npython -m own.main --config-path="$HERE/config" --config-name=mine \\\n'
        "  actor_rollout_ref.rollout.n=8\n",
    }
    put(tmp_path, files)
    script = Source(str(tmp_path / "examples/run.sh"), files["examples/run.sh"])
    (config,) = known_dialects()["verl"].read(script, Version("0.18.1"))
    assert config.sampling["temperature"].value == 0.6
    assert str(tmp_path / "config/mine.yaml") in config.parts
