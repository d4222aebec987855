import textwrap
from pathlib import Path

import pytest
from reading import lost_names, read_all, read_file, read_one, rewritten, source_of

from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.dialects.declared import declared
from rlaudit.settings.rollout_config import Loss, Origin, RolloutConfig
from rlaudit.unknown import Unknown

DIALECT = declared()["trl"]

COLOCATED = """\
model_name_or_path: org/policy
num_generations: 4
use_vllm: true
vllm_mode: colocate
vllm_gpu_memory_utilization: 0.4
temperature: 0.8   # hot
bf16: true
"""
SERVED = COLOCATED.replace("colocate", "server")
SCRIPT = """\
export VLLM_ATTENTION_BACKEND=FLASH_ATTN
TP=2
trl vllm-serve --model org/policy --tensor-parallel-size $TP --enable_prefix_caching false &
accelerate launch --num_processes 4 \\
    train_grpo.py \\
    --model_name_or_path org/policy \\
    --use_vllm True \\
    --vllm_mode colocate \\
    --temperature 0.6
"""


def test_the_colocated_engine_is_what_the_trainers_literal_says() -> None:
    config = read_one(DIALECT, COLOCATED, "0.18.1")
    assert config.offline
    assert config.engine["gpu_memory_utilization"].place is not None
    assert config.engine["gpu_memory_utilization"].place.line == 5
    assert config.engine["max_num_batched_tokens"].value == 4096
    assert config.engine["max_num_batched_tokens"].origin is Origin.FRAMEWORK
    assert "enable_prefix_caching" not in config.engine


def test_a_vllm_that_old_releases_cannot_import_settles_processed_logprobs() -> None:
    assert read_one(DIALECT, COLOCATED, "0.12.0").engine["logprobs_mode"].value == "processed_logprobs"


def test_around_the_change_to_processed_the_mode_is_unknown_and_says_why() -> None:
    mode = read_one(DIALECT, COLOCATED, "0.10.2").engine["logprobs_mode"].value
    assert isinstance(mode, Unknown) and "0.24" in mode.reason


@pytest.mark.parametrize("key", ["cast_lm_head_to_fp32: true", "vllm_importance_sampling_mode: token_mask"])
def test_a_key_of_a_later_release_settles_it_too(key: str) -> None:
    config = read_one(DIALECT, COLOCATED + key + "\n", "0.10.2")
    assert config.engine["logprobs_mode"].value == "processed_logprobs"


def test_no_logprobs_mode_reaches_a_vllm_that_has_none() -> None:
    assert "logprobs_mode" not in read_one(DIALECT, COLOCATED, "0.9.2").engine


def test_rloo_gets_processed_logprobs_later_and_does_not_use_them() -> None:
    text = COLOCATED + "normalize_advantages: true\n"
    config = read_one(DIALECT, text, "0.12.0")
    assert isinstance(config.engine["logprobs_mode"].value, Unknown)
    assert config.facts.uses_rollout_logprobs is False


def test_in_server_mode_every_engine_argument_is_unknown_and_never_a_default() -> None:
    config = read_one(DIALECT, SERVED, "0.18.1")
    assert isinstance(config.engine.get("enable_prefix_caching").value, Unknown)
    assert "gpu_memory_utilization" in lost_names(config)
    assert config.lost[0].loss is Loss.NOT_PASSED
    assert any("another command" in sentence for sentence in config.not_seen)


def test_the_server_window_without_processed_logprobs_is_told_apart() -> None:
    old = SERVED + "vllm_guided_decoding_regex: null\nmax_prompt_length: 8\n"
    assert isinstance(read_one(DIALECT, old, "0.11.0").engine["logprobs_mode"].value, Unknown)
    before = read_one(DIALECT, SERVED, "0.9.2").engine["logprobs_mode"]
    assert before.value is None and "0.27" in before.note


def test_without_a_mode_the_release_decides_between_server_and_colocate() -> None:
    text = COLOCATED.replace("vllm_mode: colocate\n", "")
    assert isinstance(read_one(DIALECT, text, "0.12.0").engine.get("dtype").value, Unknown)
    newer = read_one(DIALECT, text + "vllm_importance_sampling_clip_max: 3.0\n", "0.20.0")
    assert newer.offline and newer.engine["logprobs_mode"].value == "processed_logprobs"


def test_keys_that_no_release_for_this_vllm_has_are_said_so() -> None:
    text = COLOCATED.replace("vllm_mode: colocate", "vllm_device: auto")
    config = read_one(DIALECT, text, "0.18.1")
    assert any("no TRL release" in sentence for sentence in config.not_seen)
    (lost,) = (one for one in config.lost if one.name == "device")
    assert lost.loss is Loss.REFUSED and lost.certain
    assert lost.reason.startswith("TRL 0.27.0 or later, which this vLLM needs, has no vllm_")


def test_sampling_defaults_follow_the_release_and_stay_unknown_without_one() -> None:
    old = read_one(DIALECT, COLOCATED.replace("vllm_mode: colocate", "vllm_dtype: auto\ntop_p: 1.0"), "0.9.2")
    assert old.sampling["top_k"].value == 50
    assert read_one(DIALECT, COLOCATED, "0.18.1").sampling["top_k"].value == 0
    assert read_one(DIALECT, COLOCATED, "0.18.1").sampling["temperature"].value == 0.8


def test_generation_kwargs_win_over_the_fields() -> None:
    config = read_one(DIALECT, COLOCATED + "generation_kwargs: {top_p: 0.9}\n", "0.18.1")
    assert config.sampling["top_p"].value == 0.9


def test_the_correction_is_on_by_default_and_can_be_switched_off() -> None:
    on = read_one(DIALECT, COLOCATED, "0.18.1")
    assert on.facts.importance_sampling_correction is True and on.facts.importance_sampling_mode == "sequence_mask"
    off = read_one(DIALECT, COLOCATED + "vllm_importance_sampling_correction: false\n", "0.18.1")
    assert off.facts.uses_rollout_logprobs is False and off.facts.logs_mismatch is False


def test_the_fp32_head_is_the_trainers_only() -> None:
    config = read_one(DIALECT, COLOCATED + "cast_lm_head_to_fp32: true\n", "0.18.1")
    assert config.facts.head_dtype == "float32" and "rollout_head_dtype" not in config.trainer


def test_a_flag_and_a_script_read_like_the_yaml() -> None:
    server, trainer = read_all(DIALECT, SCRIPT, "0.18.1", "run.sh")
    assert server.engine["tensor_parallel_size"].value == 2
    assert server.engine["enable_prefix_caching"].value is False
    assert isinstance(server.sampling.get("temperature").value, Unknown)
    assert trainer.offline and trainer.sampling["temperature"].value == 0.6
    assert trainer.environment["VLLM_ATTENTION_BACKEND"].value == "FLASH_ATTN"


def test_the_server_passes_processed_logprobs_only_from_a_release_on() -> None:
    line = "trl vllm-serve --model org/policy\n"
    assert read_one(DIALECT, line, "0.18.1", "run.sh").engine["logprobs_mode"].value == "processed_logprobs"
    assert isinstance(read_one(DIALECT, line, "0.10.2", "run.sh").engine["logprobs_mode"].value, Unknown)
    assert "logprobs_mode" not in read_one(DIALECT, line, "0.9.2", "run.sh").engine


def test_an_old_vllm_rules_out_the_later_servers_flags() -> None:
    assert read_one(DIALECT, "trl vllm-serve --model a/b\n", "0.11.0", "run.sh").offline
    assert not read_one(DIALECT, "trl vllm-serve --model a/b\n", "0.20.0", "run.sh").offline


def test_a_config_named_on_the_command_line_is_read_under_its_flags(tmp_path: Path) -> None:
    (tmp_path / "grpo.yaml").write_text(COLOCATED)
    script = tmp_path / "run.sh"
    script.write_text("trl grpo --config grpo.yaml --use_vllm true --temperature 0.5\n")
    config = read_file(DIALECT, script, "0.18.1")
    assert config.sampling["temperature"].value == 0.5
    assert config.engine["gpu_memory_utilization"].value == 0.4
    assert config.parts == (str(tmp_path / "grpo.yaml"),)


def test_python_calls_are_read_with_what_cannot_be_told_left_unknown() -> None:
    text = textwrap.dedent(
        """
        import os
        from trl import GRPOConfig, OnlineDPOConfig
        os.environ["VLLM_USE_V1"] = "0"
        N = 2
        first = GRPOConfig(use_vllm=True, vllm_mode="colocate", temperature=args.t, vllm_tensor_parallel_size=N)
        second = OnlineDPOConfig(use_vllm=True, vllm_mode="colocate")
        third = GRPOConfig(use_vllm=False)
        """
    )
    grpo, dpo = read_all(DIALECT, text, "0.18.1", "train.py")
    assert isinstance(grpo.sampling["temperature"].value, Unknown)
    assert grpo.engine["tensor_parallel_size"].value == 2
    assert grpo.environment["VLLM_USE_V1"].value == "0"
    assert dpo.facts.divides_by_temperature is False and dpo.engine["gpu_memory_utilization"].value == 0.55
    assert "logprobs_mode" not in dpo.engine


def test_only_what_trl_passes_on_can_be_written() -> None:
    config = read_one(DIALECT, COLOCATED, "0.18.1")
    assert rewritten(config, COLOCATED, "gpu_memory_utilization", 0.5) == COLOCATED.replace("0.4", "0.5")
    assert config.write("enable_prefix_caching", False) is None
    trainer = read_all(DIALECT, SCRIPT, "0.18.1", "run.sh")[1]
    assert "    --vllm_enable_sleep_mode true" in rewritten(trainer, SCRIPT, "enable_sleep_mode", True)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("use_vllm: false\nnum_generations: 4\n", "run.yaml"),
        ("rlhf_type: grpo\nuse_vllm: true\nnum_generations: 4\n", "run.yaml"),
        ("actor_rollout_ref: {rollout: {name: vllm}}\n", "run.yaml"),
        ("swift rlhf --rlhf_type grpo --use_vllm true\n", "run.sh"),
        ("echo trl vllm\n", "run.sh"),
        ("x = [1, vllm", "train.py"),
        ("use_vllm: [1, 2\n", "run.yaml"),
    ],
)
def test_files_of_others_and_broken_ones_are_not_recognised(text: str, path: str) -> None:
    assert not DIALECT.recognise(source_of(text, path))


def test_a_config_whose_use_vllm_may_come_with_further_keywords_is_read() -> None:
    text = "# use_vllm\ndef f(**more):\n    return GRPOConfig(num_generations=4, vllm_mode='colocate', **more)\n"
    config = read_one(DIALECT, text, "0.18.1", "train.py")
    assert "further arguments of GRPOConfig: **more: more is an argument of f()" in config.not_seen
    for settings in (config.engine, config.sampling):
        assert all(setting.place is not None for setting in settings.values())
        assert isinstance(settings.get("temperature").value, Unknown)


def test_a_false_on_the_command_line_is_no_vllm() -> None:
    line = "accelerate launch src/open_r1/grpo.py --use_vllm VALUE --vllm_mode colocate --num_generations 8\n"
    assert not DIALECT.recognise(source_of(line.replace("VALUE", "False"), "run.sh"))
    assert DIALECT.recognise(source_of(line.replace("VALUE", "True"), "run.sh"))


def test_the_module_of_the_server_is_the_server() -> None:
    line = "python -m trl.scripts.vllm_serve --model m --enable_prefix_caching true\n"
    assert read_one(DIALECT, line, "0.18.1", "run.sh").engine["enable_prefix_caching"].value is True


def test_where_the_mode_is_not_told_a_field_of_the_colocated_engine_may_arrive_and_is_not_lost():
    text = "use_vllm: true\nmodel_name_or_path: m\nvllm_gpu_memory_utilization: 0.4\nreward_funcs: x\n"
    config = read_one(DIALECT, text, "0.12.0", "run.yaml")
    said = config.engine["gpu_memory_utilization"]
    assert said.written == 0.4 and isinstance(said.value, Unknown) and "or without effect" in said.value.reason
    assert not config.lost
    server = read_one(DIALECT, f"{text}vllm_mode: server\n", "0.18.1", "run.yaml")
    assert [(one.name, one.loss) for one in server.lost] == [("gpu_memory_utilization", Loss.NOT_PASSED)]


def test_a_command_of_any_name_stands_on_the_trainer_s_file_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes/ours.yaml").write_text("use_vllm: true\nnum_generations: 8\ntemperature: 0.7\n")
    text = "accelerate launch src/countdown.py --config recipes/ours.yaml --vllm_mode colocate\n"
    config = read_one(DIALECT, text, "0.18.1", str(tmp_path / "run.sh"))
    assert config.offline and config.sampling["temperature"].value == 0.7
    assert config.parts == (str(tmp_path / "recipes/ours.yaml"),)
    other = text.replace("ours.yaml", "theirs.yaml")
    switched_off = text.replace("colocate", "colocate --use_vllm false")
    assert not any(DIALECT.recognise(source_of(one, str(tmp_path / "run.sh"))) for one in (other, switched_off))


def test_no_top_k_is_sent_before_0_16_and_where_the_release_is_open_it_is_unknown() -> None:
    written = "use_vllm: true\nvllm_device: auto\nmax_completion_length: 64\nreward_funcs: [x]\n"
    value = read_one(DIALECT, written, "0.8.5").sampling["top_k"].value
    assert isinstance(value, Unknown) and "0 or 50" in value.reason and "0.16.0" in value.reason
    ranked = read_one(DIALECT, f"{written}top_k: 20\n", "0.8.5").sampling["top_k"]
    assert ranked.value == 20


def test_without_a_mode_the_release_that_goes_with_the_vllm_decides_where_the_engine_is() -> None:
    text = "use_vllm: true\nmodel_name_or_path: m\nreward_funcs: x\nnum_generations: 4\n"
    config = read_one(DIALECT, text, "0.18.1")
    assert config.offline and config.options["vllm_mode"].value == "colocate"
    assert any("1.6" in said and "0.27" in said for said in config.not_seen)


@pytest.mark.parametrize(("vllm", "certain"), [("0.18.1", False), ("0.12.0", None), ("0.8.5", None)])
def test_a_field_that_the_release_for_this_vllm_does_not_have_is_refused(vllm: str, certain: bool | None) -> None:
    config = read_one(DIALECT, COLOCATED + "max_prompt_length: 512\n", vllm)
    lost = [one for one in config.lost if one.name == "max_prompt_length"]
    assert [one.certain for one in lost] == ([] if certain is None else [certain])


def test_what_decides_the_objective_is_the_release_s_default_where_nothing_is_written() -> None:
    old, new = read_one(DIALECT, COLOCATED + "vllm_dtype: auto\n", "0.8.5"), read_one(DIALECT, COLOCATED, "0.18.1")
    assert (old.options["beta"].value, new.options["beta"].value) == (0.04, 0.0)
    assert new.options["loss_type"].value == "dapo"
    assert read_one(DIALECT, COLOCATED + "beta: 0.1\n", "0.18.1").options["beta"].value == 0.1


@pytest.mark.parametrize(("started", "is_open"), [("accelerate launch src/grpo.py", True), ("trl grpo", False)])
def test_whether_a_program_of_the_project_trains_with_trls_own_trainer_is_open(started: str, is_open: bool) -> None:
    line = f"{started} --use_vllm true --vllm_mode colocate --num_generations 8\n"
    open_ones = [one for one in read_one(DIALECT, line, "0.18.1", "run.sh").not_seen if "TRL's own trainer" in one]
    assert (["grpo.py" in one and "`rlaudit record`" in one for one in open_ones] == [True]) is is_open


PROGRAM = """\
from trl import GRPOConfig, TrlParser
from own.trainer import OwnTrainer{imported}

def main(args: GRPOConfig) -> None:
    trainer_class = OwnTrainer if args.use_vllm else {otherwise}
    trainer_class(args=args).train()
"""
OWN = """\
from transformers import Trainer
from vllm import LLM

class OwnTrainer(Trainer):
    def __init__(self, args):
        self.llm = LLM(model=args.model, enable_prefix_caching=True, max_model_len=args.longest, dtype="half", seed=3)
        self.beta = args.beta
"""


def of_program(folder: Path, program: str, trainer: str = OWN, mode: str = "colocate") -> RolloutConfig:
    """The config of a script that starts a program with a trainer of the project's."""
    (folder / ".git").mkdir(exist_ok=True)
    (folder / "own").mkdir(exist_ok=True)
    (folder / "train.py").write_text(program)
    (folder / "own/__init__.py").write_text("")
    (folder / "own/trainer.py").write_text(trainer)
    line = f"accelerate launch train.py --use_vllm true --vllm_mode {mode} --vllm_gpu_memory_utilization 0.5\n"
    return read_one(DIALECT, line, "0.18.1", str(folder / "run.sh"))


def test_a_trainer_of_the_projects_own_is_not_judged_by_trls(tmp_path: Path) -> None:
    config = of_program(tmp_path, PROGRAM.format(imported="", otherwise="OwnTrainer"))
    for name in ("logprobs_mode", "enable_prefix_caching", "gpu_memory_utilization", "max_num_batched_tokens"):
        assert not config.engine.get(name).known
    assert config.engine["gpu_memory_utilization"].written == 0.5
    assert all(not one.known for one in config.trainer.values()) and not config.sampling["temperature"].known
    assert not config.options["beta"].known and not config.options["loss_type"].known
    assert config.write("gpu_memory_utilization", 0.3) is None
    assert any("OwnTrainer" in said and "`rlaudit record`" in said for said in config.not_seen)


def test_an_own_trainer_leaves_open_where_its_server_is_started(tmp_path: Path) -> None:
    server = of_program(tmp_path, "from trl import GRPOTrainer\nGRPOTrainer().train()\n", mode="server")
    assert isinstance(server.engine, Elsewhere) and server.engine.sentence in server.not_seen
    own = of_program(tmp_path, PROGRAM.format(imported="", otherwise="OwnTrainer"), mode="server")
    assert server.engine.sentence not in own.not_seen


@pytest.mark.parametrize(
    "program",
    [
        PROGRAM.format(imported="\nfrom trl import GRPOTrainer", otherwise="GRPOTrainer"),
        "from trl import GRPOTrainer as Trainer\n\nclass OwnTrainer(Trainer):\n    pass\n\nOwnTrainer().train()\n",
    ],
)
def test_a_trainer_that_is_trls_or_is_based_on_it_in_the_program_is_taken_for_it(tmp_path: Path, program: str) -> None:
    config = of_program(tmp_path, program)
    assert config.engine["logprobs_mode"].value == "processed_logprobs"
    assert config.facts.divides_by_temperature is True


def test_a_trainer_that_another_file_bases_on_trls_leaves_everything_open(tmp_path: Path) -> None:
    trainer = OWN.replace("from transformers import Trainer", "from trl import GRPOTrainer as Trainer")
    config = of_program(tmp_path, PROGRAM.format(imported="", otherwise="OwnTrainer"), trainer)
    assert not config.options["beta"].known and not config.engine.get("seed").known


def test_before_0_26_the_context_is_prompt_and_completion_together() -> None:
    text = COLOCATED + "max_prompt_length: {}\nmax_completion_length: 100\n"
    assert read_one(DIALECT, text.format(1000), "0.8.5").engine["max_model_len"].value == 1100
    assert read_one(DIALECT, COLOCATED, "0.8.5").engine["max_model_len"].value == 768
    assert "max_model_len" not in read_one(DIALECT, text.format("null"), "0.8.5").engine
    assert "max_model_len" not in read_one(DIALECT, COLOCATED, "0.18.1").engine


def test_steps_that_follow_from_the_number_of_processes_leave_max_num_seqs_open() -> None:
    written = COLOCATED + "per_device_train_batch_size: 4\ngradient_accumulation_steps: 2\n"
    assert read_one(DIALECT, written, "0.18.1").engine["max_num_seqs"].value == 8
    assert not read_one(DIALECT, written + "generation_batch_size: 64\n", "0.18.1").engine["max_num_seqs"].known


def test_the_asynchronous_trainer_needs_no_use_vllm() -> None:
    text = "from trl.experimental.async_grpo import AsyncGRPOConfig  # vllm\nargs = AsyncGRPOConfig(temperature=0.7)\n"
    config = read_one(DIALECT, text, "0.18.1", "train.py")
    assert config.facts.weight_updates == "in flight" and not config.engine.get("dtype").known
    assert config.sampling["temperature"].value == 0.7
