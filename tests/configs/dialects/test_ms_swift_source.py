"""ms-swift's own source beside a config decides in place of what its releases are known to do."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.configs.dialects.ms_swift.read import DIALECT
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Unknown

COMMAND = "swift rlhf --rlhf_type grpo --model org/policy --use_vllm true --vllm_gpu_memory_utilization 0.5 {more}\n"
SERVER = "swift rollout --model org/policy\n"
ENGINE = """
import os
import inspect
os.environ["VLLM_USE_V1"] = os.environ.get("VLLM_USE_V1", "0")
from vllm import AsyncEngineArgs, EngineArgs, SamplingParams

class VllmEngine:
    def __init__(self, model, *, gpu_memory_utilization: float = 0.9, tensor_parallel_size: int = 1,
                 max_num_seqs: int = 200, enforce_eager: bool = False, enable_prefix_caching: bool = False,
                 seed=None, max_lora_rank: int = 16, distributed_executor_backend=None, engine_kwargs=None):
        engine_cls = AsyncEngineArgs if self.serves else EngineArgs
        if "seed" in inspect.signature(engine_cls).parameters and seed is not None:
            engine_kwargs["seed"] = seed
        self.engine_args = engine_cls(
            model=model, gpu_memory_utilization=gpu_memory_utilization, tensor_parallel_size=tensor_parallel_size,
            max_num_seqs=max_num_seqs, enforce_eager=enforce_eager, trust_remote_code=True,
            enable_prefix_caching=enable_prefix_caching, distributed_executor_backend=distributed_executor_backend,
            **engine_kwargs)
        {later}

    def _prepare_generation_config(self, request_config):
        kwargs = {"max_tokens": request_config.max_tokens}
        if request_config.logprobs:
            kwargs["logprobs"] = 1
        for key in ["n", "best_of", "seed"]:
            {guard}kwargs[key] = getattr(request_config, key)
        res = SamplingParams(**kwargs)
        return res
"""
TRAINER = """
class GRPOTrainer:
    def prepare(self, args):
        self.engine = VllmEngine(
            args.model, tensor_parallel_size=args.tensor_parallel_size, enforce_eager=args.vllm_enforce_eager,
            gpu_memory_utilization=args.vllm_gpu_memory_utilization, max_num_seqs=args.batch * 2,
            enable_prefix_caching=args.vllm_enable_prefix_caching, {engine}
            distributed_executor_backend="external_launcher")
        self.request_config = RequestConfig(max_tokens=args.length, temperature=args.temperature, top_k=args.top_k,
                                            {request})

    def step(self, inputs):
        self._move_model_to_vllm()
        {step}
        return inputs["old_per_token_logps"]
"""
ARGUMENTS = """
class VllmArguments:
    vllm_gpu_memory_utilization: float = 0.8
    vllm_enable_prefix_caching: Optional[bool] = None

    def get_vllm_engine_kwargs(self):
        return {"gpu_memory_utilization": self.vllm_gpu_memory_utilization, "enforce_eager": self.vllm_enforce_eager,
                "enable_prefix_caching": self.vllm_enable_prefix_caching, "max_num_seqs": 64}

class GRPOArgumentsMixin:
    top_k: int = 7
    tensor_parallel_size: int = 2
    vllm_enable_prefix_caching: bool = True
    {option}
"""
SERVE = """
def serve(args):
    kwargs["engine_kwargs"] = {"load_format": "dummy"}
    return get_infer_engine(args, seed=worker_seed)
"""


def read(
    root: Path, command: str = COMMAND, *, version: str = "3.3.0.dev0", named: bool = False, to: str = "0.18.1",
    **parts: str,
) -> RolloutConfig:  # fmt: skip
    """A config of a checkout. named: the source lies elsewhere and was named."""
    home = root / "elsewhere" if named else root
    files = {
        "swift/version.py": f"__version__ = '{version}'\n",
        "swift/llm/infer/infer_engine/vllm_engine.py": ENGINE,
        "swift/trainers/rlhf_trainer/grpo_trainer.py": TRAINER,
        "swift/trainers/arguments.py": ARGUMENTS,
        "swift/llm/infer/rollout.py": SERVE,
    }
    for name, template in files.items():
        text = template
        for part in ("guard", "engine", "request", "step", "option", "later"):
            text = text.replace(f"{{{part}}}", parts.get(part, "pass" if part in {"step", "option", "later"} else ""))
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    script = root / "scripts" / "run.sh"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(command.replace("{more}", parts.get("more", "")))
    (config,) = DIALECT.read(Source(str(script), script.read_text(), given=(str(home),) if named else ()), Version(to))
    return config


@pytest.mark.parametrize("named", [False, True])
def test_the_call_of_the_engine_and_its_defaults_decide_what_vllm_gets(tmp_path: Path, named: bool) -> None:
    config = read(tmp_path, named=named)
    assert config.engine["gpu_memory_utilization"].value == 0.5
    assert config.engine["tensor_parallel_size"].value == 2
    assert config.engine["enable_prefix_caching"].value is True
    assert config.engine["trust_remote_code"].value is True
    assert isinstance(config.engine["max_num_seqs"].value, Unknown)
    assert any(part.endswith("vllm_engine.py") for part in config.parts)


def test_an_argument_that_the_source_does_not_pass_is_left_to_vllm(tmp_path: Path) -> None:
    config = read(tmp_path)
    assert not {"seed", "disable_cascade_attn", "logprobs_mode", "max_lora_rank"} & set(config.engine)
    assert "does not pass it" in config.decided["seed"]
    assert config.says("seeds_replicas") is None


def test_a_seed_of_the_process_index_seeds_the_replicas(tmp_path: Path) -> None:
    more = "--vllm_mode colocate"
    config = read(tmp_path, more=more, engine="seed=self.process_index // args.tensor_parallel_size,")
    assert config.engine["seed"].value == 0 and config.says("seeds_replicas") is True


def test_sampling_is_what_the_request_sends(tmp_path: Path) -> None:
    config = read(tmp_path)
    assert config.sampling["top_k"].value == 7
    assert not {"logprobs", "min_p", "top_p"} & set(config.sampling)


def test_logprobs_are_those_that_the_source_asks_for(tmp_path: Path) -> None:
    assert read(tmp_path, request="logprobs=True").sampling["logprobs"].value == 1


def test_facts_of_other_releases_are_taken_back_where_the_source_does_not_tell(tmp_path: Path) -> None:
    config = read(tmp_path)
    assert config.says("divides_by_temperature") is None
    assert config.says("resets_prefix_cache") is False
    assert config.says("weight_updates") == "between rollouts"


def test_facts_that_the_source_tells_are_taken_from_it(tmp_path: Path) -> None:
    config = read(tmp_path, step="self.engine.reset_prefix_cache(); logits = logits / self.temperature")
    assert config.says("resets_prefix_cache") is True
    assert config.says("divides_by_temperature") is True
    assert "grpo_trainer.py:" in config.trainer["divides_by_temperature"].note


def test_a_source_without_a_correction_has_none_that_is_off(tmp_path: Path) -> None:
    config = read(tmp_path)
    assert config.says("importance_sampling_correction") is None
    assert config.says("logs_mismatch") is False and config.says("uses_rollout_logprobs") is False


def test_a_correction_of_the_source_is_off_by_its_default(tmp_path: Path) -> None:
    off = "rollout_importance_sampling_mode: Optional[str] = None"
    assert read(tmp_path, option=off).says("importance_sampling_correction") is False
    on = "rollout_importance_sampling_mode: str = 'token_mask'"
    assert read(tmp_path / "on", option=on).says("importance_sampling_correction") is None


def test_variables_that_the_engines_file_sets_hold_where_the_command_says_nothing(tmp_path: Path) -> None:
    assert read(tmp_path).environment["VLLM_USE_V1"].value == "0"
    assert read(tmp_path, "VLLM_USE_V1=1 " + COMMAND).environment["VLLM_USE_V1"].value == "1"


def test_the_server_has_defaults_of_its_own_and_gives_each_worker_a_seed(tmp_path: Path) -> None:
    config = read(tmp_path, SERVER)
    assert config.engine["gpu_memory_utilization"].value == 0.8
    assert "enable_prefix_caching" not in config.engine
    assert config.engine["load_format"].value == "dummy"
    assert isinstance(config.engine["seed"].value, Unknown)


def test_a_store_after_the_arguments_are_made_leaves_the_value_open(tmp_path: Path) -> None:
    later = "if distributed_executor_backend: engine_args.enforce_eager = True"
    assert isinstance(read(tmp_path, later=later).engine["enforce_eager"].value, Unknown)


def test_the_number_of_workers_is_that_of_the_replicas_where_the_source_has_the_option(tmp_path: Path) -> None:
    more = "--num_infer_workers 4"
    assert read(tmp_path, more=more, option="num_infer_workers: int = 1").says("replicas") == 4
    assert read(tmp_path / "without", more=more).says("replicas") is None
