"""A config that inherits its engine is read with its parents, and one that is not read is named."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.cli.app import run
from rlaudit.configs.source import Source
from rlaudit.inspection.read_configs import known_dialects, recognise
from rlaudit.inspection.without_config import MOST_OF_A_WORD, Mention, about_mentions, mention

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


def test_a_folder_run_names_what_it_does_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.sh").write_text("vllm serve m\n")
    Path("overlay.yaml").write_text("# of NeMo-RL\ndefaults: gone.yaml\npolicy: {generation: {vllm: true}}\n")
    Path("notes.yaml").write_text("a: 1\n")
    run(["inspect", ".", "--from", "0.8.5", "--to", "0.18.1"])
    out = capsys.readouterr().out
    assert "overlay.yaml:3: mentions vllm, and no rollout config is read there" in out
    assert "notes.yaml" not in out


def test_many_files_are_counted_by_folder_after_the_first() -> None:
    found = [Mention(f"{'a' if at < MOST_OF_A_WORD else 'b'}/{at}.py", "vllm", 1) for at in range(MOST_OF_A_WORD + 2)]
    (sentence,) = about_mentions(found)
    assert ", 2 more in b: mention vllm, and no rollout config is read there" in sentence


@pytest.mark.parametrize("text", ["x = EngineArgs(num_scheduler_steps=1)", "_engine_args: {tensor_parallel_size: 2}"])
def test_arguments_for_an_engine_are_a_mention_without_vllms_name(text: str) -> None:
    assert mention(Source("a.py", text)) is not None


@pytest.mark.parametrize("text", ["", "evllm: 1", "overlay: trl", "converl"])
def test_other_words_are_no_mention(text: str) -> None:
    assert mention(Source("a.yaml", text)) is None


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
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    script = Source(str(tmp_path / "examples/run.sh"), files["examples/run.sh"])
    (config,) = known_dialects()["verl"].read(script, Version("0.18.1"))
    assert config.sampling["temperature"].value == 0.6
    assert str(tmp_path / "config/mine.yaml") in config.parts


@pytest.mark.parametrize("text", [
    'BASE="${HERE}/base.sh"\nexport TOP_P=0.9\nexec bash "${BASE}"\n',
    "bash scripts/base.sh --fast\n",
    "sh ./base.sh\n",
])  # fmt: skip
def test_a_script_that_hands_over_to_another_names_it_where_it_is_named(text: str) -> None:
    found = mention(Source("run.sh", text), named=True)
    assert found is not None and about_mentions([found])[0].endswith("hands over to base.sh: inspect that one")
    assert mention(Source("run.sh", text)) is None


def test_a_script_that_starts_a_program_names_it_and_the_way_to_know_what_it_decides() -> None:
    found = mention(Source("run.sh", "# vllm\ntorchrun --nproc_per_node 8 \\\n  src/grpo.py --use 1\n"), named=True)
    assert found is not None
    started, mentioned = about_mentions([found])
    assert started == "run.sh:2 hands over to src/grpo.py: inspect that one" and "`rlaudit record`" in mentioned


@pytest.mark.parametrize(("path", "there"), [("train.py", True), ("train.yaml", False)])
def test_a_program_that_is_not_read_names_the_way_to_know_what_it_decides(path: str, there: bool) -> None:
    found = mention(Source(path, "# vllm\n"))
    assert found is not None
    assert ("`rlaudit record`" in about_mentions([found])[0]) is there


def test_a_script_that_hands_over_to_nobody_names_none() -> None:
    assert mention(Source("run.sh", "echo base.sh\nbash -c 'ls'\nbash \"$1\"\n"), named=True) is None
