"""A file without a config is named if it runs rollouts on another engine, or has words of vLLM or a framework."""

from pathlib import Path

import pytest
from toy_dialect import Desk

from rlaudit.cli.app import run
from rlaudit.configs.source import Source
from rlaudit.inspection.without_config import (
    MOST_OF_A_WORD,
    Mention,
    OtherEngine,
    about_engines,
    about_mentions,
    mention,
    other_engine,
)


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("a.sh", "python train.py \\\n  --sglang-mem-fraction-static 0.7\n", 2),
        ("a.sh", "# --sglang-x\npython -m verl.trainer.main_ppo actor_rollout_ref.rollout.name=sglang\n", 2),
        ("a.yaml", "rollout:\n  mode: async\n  name: sglang\n", 3),
        ("a.yaml", "gconfig: {}\nallocation_mode: sglang:d4+d4\n", 2),
        ("a.py", "flags = '--sglang-context-length 8 '\n", 1),
        ("a.sh", "python -m sglang.launch_server --model m\n", 1),
    ],
)
def test_sglang_is_told_by_its_options_and_keys(path: str, text: str, line: int) -> None:
    found = other_engine(Source(path, text))
    assert found == OtherEngine(path, "SGLang", line)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.sh", "pip install sglang\n"),
        ("a.yaml", "packages:\n  - name: sglang\n"),
        ("a.json", '{"rollout": {"name": "sglang"}}'),
        ("a.sh", "# rollout.name=sglang\n"),
        ("a.sh", "python train.py --vllm-gpu-memory-utilization 0.5\n"),
    ],
)
def test_a_mention_starts_no_engine(path: str, text: str) -> None:
    assert other_engine(Source(path, text)) is None


def test_vllm_under_slimes_options_is_named_as_such() -> None:
    text = "python train.py --rollout-num-gpus-per-engine 1 --vllm-gpu-memory-utilization 0.25\n"
    found = other_engine(Source("a.sh", text))
    assert found is not None and found.name == "vLLM under slime's options"


FORGE = """\
model: m
policy:
  # of the generator
  use_dcp: false

  engine_args:
    model: ${model}
    tensor_parallel_size: 1
    enforce_eager: false
    enable_prefix_caching: true
  sampling_params: {n: 8}
trainer: {name: vllm}
"""
RECIPE = "model:\n  model_id: org/m\n  base_args: [--trust-remote-code]\nfeatures: {}\nvariants:\n  default: {}\n"


@pytest.mark.parametrize(
    ("path", "text", "name", "line"),
    [
        ("a.yaml", FORGE, "vLLM under torchforge's config", 2),
        (
            "a.sh",
            "set -e\npython -m own.server --model m \\\n  --max-model-len 100\n",
            "vLLM under another program that takes vLLM's flags",
            2,
        ),
        (
            "a.py",
            "c = LLMConfig(\n  model_loading_config={'model_id': 'm'}, engine_kwargs={'seed': 1})\n",
            "vLLM under Ray's LLMConfig",
            1,
        ),
        (
            "a.yaml",
            "llm_configs:\n\n\n- model_loading_config: {model_id: m}\n  engine_kwargs: {}\n",
            "vLLM under Ray Serve's llm_configs",
            4,
        ),
        (
            "values.yaml",
            "servingEngineSpec:\n  modelSpec:\n  - name: a\n    vllmConfig:\n      maxModelLen: 8\n",
            "vLLM under a Helm chart's values",
            4,
        ),
        (
            "values.yaml",
            "image:\n  repository: org/prime-rl\ninference: {replicas: 3}\n",
            "vLLM under a Helm chart's values",
            2,
        ),
        ("a.yaml", RECIPE, "vLLM under a recipe of vLLM's collection", 5),
        (
            "Dockerfile",
            'FROM x\nRUN pip install vllm\nENTRYPOINT ["vllm", "serve"]\n',
            "vLLM under a Dockerfile's CMD or ENTRYPOINT",
            3,
        ),
        (
            "a.Dockerfile",
            "FROM vllm/vllm-openai\nCMD --model m \\\n  --max-model-len 100\n",
            "vLLM under a Dockerfile's CMD or ENTRYPOINT",
            2,
        ),
    ],
)
def test_what_serves_models_or_is_dormant_is_named_and_not_read(
    desk: Desk, path: str, text: str, name: str, line: int
) -> None:
    assert other_engine(Source(path, text)) == OtherEngine(path, name, line)
    desk.file(path, text)
    assert desk.inspect(path) == 3
    assert f"{path}:{line}: rollouts run on {name}, which is not read here" in desk.out


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.yaml", "policy: {lr: 1}\nroles:\n  engine_args: {seed: 1}\n"),
        ("a.py", "class LLMConfig(BaseModel):\n    engine_kwargs: dict\n"),
        ("a.yaml", "# vllmConfig: {}\n"),
    ],
)
def test_a_file_that_only_looks_like_these_is_left_alone(path: str, text: str) -> None:
    assert other_engine(Source(path, text)) is None


def test_many_files_make_one_sentence() -> None:
    (said,) = about_engines(OtherEngine(f"{name}.sh", "SGLang", 1) for name in "abcde")
    assert said.startswith("a.sh:1, b.sh:1, c.sh:1 and 2 more files: rollouts run on SGLang")


def test_the_report_says_it_and_the_exit_code_is_that_of_no_config(desk: Desk) -> None:
    desk.file("run.sh", "python train.py --sglang-mem-fraction-static 0.7\n")
    assert desk.inspect("run.sh") == 3
    assert "run.sh:1: rollouts run on SGLang, which is not read here" in desk.out
    desk.file("x.yaml")
    assert desk.inspect(".", "--fail-on", "never") == 0
    assert "run.sh:1: rollouts run on SGLang" in desk.out


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


@pytest.mark.parametrize(("path", "there"), [("train.py", True), ("train.yaml", False)])
def test_a_program_that_is_not_read_names_the_way_to_know_what_it_decides(path: str, there: bool) -> None:
    found = mention(Source(path, "# vllm\n"))
    assert found is not None
    assert ("`rlaudit record`" in about_mentions([found])[0]) is there


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("run.sh", "swift rlhf --rlhf_type grpo \\\n  # --use_vllm true\n", "use_vllm is commented out"),
        ("run.sh", "swift rlhf --rlhf_type grpo --use_vllm false\n", "use_vllm is false"),
        ("a.py", "import vllm\nx = GRPOConfig(use_vllm=False)\n", "use_vllm is False"),
        ("a.py", "m = FastLanguageModel.from_pretrained('m', fast_inference = False)\n", "fast_inference is False"),
        ("a.yaml", "trl:\n  use_vllm: false\n", "use_vllm is false"),
    ],
)
def test_rollouts_that_a_switch_keeps_from_vllm_run_on_transformers(desk: Desk, path: str, text: str, why: str) -> None:
    desk.file(path, text)
    assert desk.inspect(path) == 3
    assert f"rollouts run on transformers: {why}" in desk.out


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "import vllm\nx = GRPOConfig(use_vllm=args.use_vllm)\n# use_vllm=False\n"),
        ("a.py", "parser.add_argument('--use_vllm', action='store_true')\n"),
        ("a.py", "class Arguments:\n    use_vllm: bool = False\n"),
        ("a.yaml", "defaults: base.yaml\n# use_vllm: true\n"),
    ],
)
def test_a_switch_that_something_else_may_set_decides_nothing(path: str, text: str) -> None:
    assert other_engine(Source(path, text)) is None
