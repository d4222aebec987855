"""From a rollout config to the recipe that tries it out."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.nvidia_driver import Device
from rlaudit.errors import UsageError
from rlaudit.laboratory.from_file import as_yaml, experiment_of, is_recipe
from rlaudit.laboratory.studies.arms.further_factors import named_factors
from rlaudit.laboratory.studies.arms.plan import make_plan
from rlaudit.laboratory.studies.arms.recipe import recipe_of

CPU = Accelerator("cpu", "a processor", (), "", 2, 24_000)
ONE_GPU = Accelerator("cuda", "H100", (Device(0, "GPU-a", "H100", 81_559, "sm90"),), "570", 16, 128_000)
CONFIG = """\
model_path: Qwen/Qwen2.5-1.5B
llm:
  parameters: {max_tokens: 2048, temperature: 0.7, top_p: 0.95}
finetune:
  rl: {policy_loss: ppo, temperature: 0.7}
vllm_config:
  use_v1: false
  vllm_kwargs:
    dtype: bfloat16
    num-scheduler-steps: 1
    gpu-memory-utilization: 0.8
    tensor-parallel-size: 4
    max_model_len: 4096
    block-size: ${block}
world: {actor_fraction: 2}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "base.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


def experiment(config: Path, accelerator: Accelerator = ONE_GPU, model: str | None = "a-model"):
    return experiment_of(config, "0.8.5", "0.18.1", model, accelerator)


@pytest.fixture
def block(config: Path) -> Any:
    """The only block of the experiment, on one GPU."""
    (found,) = experiment(config).document["blocks"]
    return found


def test_the_arms_carry_the_configs_sampling_and_engine_arguments(config: Path, block: Any) -> None:
    assert experiment(config).document["sampling"] == {"temperature": 0.7, "top_p": 0.95}
    carried = {"dtype": "bfloat16", "max_model_len": 4096, "gpu_memory_utilization": 0.8}
    for side in ("reference", "candidate"):
        assert block[side]["engine_args"].items() >= carried.items()
    assert (block["reference"]["version"], block["candidate"]["version"]) == ("0.8.5", "0.18.1")


def test_an_argument_goes_only_to_the_release_that_has_it(block: Any) -> None:
    assert block["reference"]["engine_args"]["num_scheduler_steps"] == 1
    assert "num_scheduler_steps" not in block["candidate"]["engine_args"]


def test_the_engine_that_the_framework_pins_is_pinned(block: Any) -> None:
    assert block["reference"]["engine"] == "V0"
    assert "environment_variables" not in block["reference"]
    assert "engine" not in block["candidate"]


def test_what_the_migration_moves_is_set_back_in_the_parity_arm_beside_factors_of_findings(block: Any) -> None:
    assert block["factors"].items() >= {"logprobs-mode": "processed", "prefix-caching": "off"}.items()
    assert {"logprobs-mode", "prefix-caching", "async-scheduling"} <= set(block["parity"])
    assert "batch-invariance" not in block["parity"] and "chunked-prefill" in block["factors"]


def test_what_this_machine_cannot_hold_or_the_file_does_not_tell_is_changed_and_said(config: Path) -> None:
    made = experiment(config)
    engine_args = made.document["blocks"][0]["candidate"]["engine_args"]
    assert engine_args["tensor_parallel_size"] == 1 and "block_size" not in engine_args
    assert "tensor_parallel_size=4: GPUs on this machine: 1; 1 is used" in made.changed
    assert any(sentence.startswith("block_size: ") for sentence in made.changed)


def test_on_a_cpu_what_belongs_to_a_gpu_is_left_out_and_said(config: Path) -> None:
    made = experiment(config, CPU)
    engine_args = made.document["blocks"][0]["reference"]["engine_args"]
    assert "gpu_memory_utilization" not in engine_args
    assert engine_args["block_size"] == 16
    assert any("max_model_len=4096" in sentence for sentence in made.changed)


def test_the_configs_own_model_runs_unless_another_is_named(config: Path) -> None:
    own, named = experiment(config, model=None).document, experiment(config).document
    assert (own["model"], own.get("stands_for")) == ("Qwen/Qwen2.5-1.5B", None)
    assert (named["model"], named["stands_for"]) == ("a-model", "Qwen/Qwen2.5-1.5B")


def test_a_written_recipe_is_a_recipe_which_a_config_is_not_and_plans_the_same_arms(
    config: Path, tmp_path: Path
) -> None:
    made = experiment(config)
    path = tmp_path / "recipe.yaml"
    path.write_text(as_yaml(made), encoding="utf-8")
    assert [is_recipe(one) for one in (path, Path("v0-to-v1"), config)] == [True, True, False]
    again = recipe_of(yaml.safe_load(path.read_text(encoding="utf-8")), path, "cuda")
    first = recipe_of(dict(made.document), path, "cuda")
    assert make_plan(again).blocks[0].arms == make_plan(first).blocks[0].arms


def test_greedy_rollouts_a_single_version_and_other_files_are_refused(config: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is looked at under vLLM"):
        experiment_of(config, "0.18.1", "0.18.1", None, ONE_GPU)
    config.write_text(CONFIG.replace("temperature: 0.7", "temperature: 0.0"), encoding="utf-8")
    with pytest.raises(UsageError, match="greedily"):
        experiment(config)
    (tmp_path / "other.yaml").write_text("a: 1\n", encoding="utf-8")
    with pytest.raises(UsageError, match="neither a recipe nor a rollout config"):
        experiment(tmp_path / "other.yaml")


def test_what_is_left_out_says_what_is_not_seen_for_it(config: Path) -> None:
    extra = "    enable-sleep-mode: true\n    data-parallel-size: 2\n    max_model_len: 4096\n"
    config.write_text(CONFIG.replace("    max_model_len: 4096\n", extra), encoding="utf-8")
    said = "\n".join(experiment(config).changed)
    assert "enable_sleep_mode=True: left out; the engine never sleeps here" in said
    assert "TRL issue 5312" in said
    assert "data_parallel_size=2: left out; one replica runs." in said


def test_a_named_factor_is_tried_at_its_levels_also_on_one_release(config: Path) -> None:
    named = named_factors(["batch-size", "dtype=float32", "dtype=float16"])
    made = experiment_of(config, "0.8.5", "0.18.1", "a-model", ONE_GPU, named=named)
    (block,) = made.document["blocks"]
    assert block["factors"]["batch-size"] == "alone" and block["factors"]["dtype"] == ["float32", "float16"]
    assert "logprobs-mode" in block["factors"]
    (alone,) = experiment_of(config, "0.18.1", "0.18.1", "a-model", ONE_GPU, named=named).document["blocks"]
    assert "reference" not in alone and "batch-size" in alone["factors"]


@pytest.mark.parametrize(
    ("text", "says"),
    [("bach-size", "did you mean batch-size"), ("dtype=int8", "float32"), ("engine-version", "=LEVEL")],
)
def test_a_factor_that_cannot_be_tried_is_refused_with_the_way_out(text: str, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        named_factors([text])
    assert says in str(raised.value)


@pytest.mark.parametrize(("accelerator", "because"), [(CPU, "there is no GPU here"), (ONE_GPU, None)])
def test_a_suspect_is_tried_or_has_a_line_with_the_reason(
    config: Path, accelerator: Accelerator, because: str | None
) -> None:
    made = experiment(config, accelerator)
    line = f"factor async-scheduling: not tried, {because}"
    tried = "async-scheduling" in made.document["blocks"][0]["factors"]
    assert (line in made.changed, tried) == (because is not None, because is None)
    assert "generation-config-auto: not tried, no factor sets generation_config" in made.changed


def test_a_suspect_that_the_release_does_not_know_says_so(config: Path) -> None:
    named = experiment_of(config, "0.8.5", "0.9.2", "a-model", ONE_GPU)
    assert "factor logprobs-mode: not tried, vLLM 0.9.2 has no logprobs_mode" in named.changed
