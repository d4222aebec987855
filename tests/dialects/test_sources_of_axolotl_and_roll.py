"""axolotl and ROLL with their own source beside the config, or named."""

import pytest
from packaging.version import Version
from reading import put

from rlaudit.configs.source import Source
from rlaudit.dialects.declared import declared
from rlaudit.settings.rollout_config import RolloutConfig
from rlaudit.unknown import Unknown

AXOLOTL = """
base_model: m
rl: grpo
trl: {use_vllm: true, num_generations: 8}
vllm: {enable_prefix_caching: false, enforce_eager: true}
"""
SERVER = """
class LoRAScriptArguments: ...
def worker(given):
    return LLM(model=given.model, enforce_eager=given.enforce_eager, dtype=given.dtype, kv_cache_dtype=given.kv,
               enable_prefix_caching=given.enable_prefix_caching, logprobs_mode="processed_logprobs")
"""
ROLL = """
actor_infer:
  strategy_args:
    strategy_name: vllm
    strategy_config: {gpu_memory_utilization: 0.8}
"""
STRATEGY = """
def initialize(vllm_config, config):
    vllm_config.update({
        "model": config.path, "dtype": dtype, "seed": config.seed,
        "enforce_eager": vllm_config.get("enforce_eager", True),
        "enable_prefix_caching": vllm_config.get("enable_prefix_caching", False),
        "max_num_batched_tokens": vllm_config.get("max_num_batched_tokens", 8192),
    })
"""
GENERATING = """
class GeneratingArguments:
    temperature: Optional[float] = field(
        default=0.95, metadata={})
    top_p: Optional[float] = field(default=1.0)
"""


def axolotl(text: str = AXOLOTL, *given: str, vllm: str = "0.18.1") -> RolloutConfig:
    (config,) = declared()["axolotl"].read(Source("run.yaml", text, given), Version(vllm))
    return config


@pytest.mark.parametrize(("serve", "arrives"), [
    ("prefix = cfg.vllm.enable_prefix_caching if cli_prefix is None else cli_prefix", True),
    ("prefix = cli.get('x') or cfg.vllm.enable_prefix_caching", True),
    ("prefix = cfg.vllm.enable_prefix_caching or cli.get('x')", False),
])  # fmt: skip
def test_whether_a_false_arrives_is_read_from_axolotl_s_source(tmp_path, serve, arrives):
    files = {"src/axolotl/cli/vllm_serve.py": serve, "src/axolotl/scripts/vllm_serve_lora.py": SERVER}
    prefix = axolotl(AXOLOTL, str(put(tmp_path, files))).engine["enable_prefix_caching"]
    assert prefix.known is arrives and (not arrives or prefix.value is False)
    assert axolotl().engine["enable_prefix_caching"].value is False and not axolotl().lost


def test_what_axolotl_s_server_passes_is_read_unless_the_config_names_another(tmp_path):
    files = {"src/axolotl/cli/vllm_serve.py": "", "src/axolotl/scripts/vllm_serve_lora.py": SERVER}
    root = str(put(tmp_path, files))
    assert axolotl(AXOLOTL, root).engine["logprobs_mode"].value == "processed_logprobs"
    assert "vllm_serve_lora.py" in axolotl(AXOLOTL, root).decided["logprobs_mode"]
    other = AXOLOTL.replace("vllm: {", "vllm: {serve_module: trl.scripts.vllm_serve, ")
    assert isinstance(axolotl(other, root).engine["logprobs_mode"].value, Unknown)
    colocated = axolotl(AXOLOTL.replace("use_vllm: true", "use_vllm: true, vllm_mode: colocate"), root)
    assert "vllm_serve_lora.py" not in str(colocated.decided.get("logprobs_mode"))


def test_what_a_copy_of_roll_does_not_fill_in_as_it_did_is_open(tmp_path):
    files = {"roll/distributed/strategy/vllm_strategy.py": STRATEGY, "roll/configs/generating_args.py": GENERATING}
    root = str(put(tmp_path, files))
    (config,) = declared()["roll"].read(Source("run.yaml", ROLL, (root,)), Version("0.18.1"))
    assert config.engine["max_num_batched_tokens"].value == 8192
    assert "vllm_strategy.py:7" in config.decided["max_num_batched_tokens"]
    for name in ("enforce_eager", "enable_prefix_caching", "disable_custom_all_reduce", "seed"):
        assert not config.engine[name].known
    assert config.sampling["temperature"].value == 0.95
    assert not config.sampling["top_p"].known


def test_without_a_source_roll_s_table_holds():
    (config,) = declared()["roll"].read(Source("run.yaml", ROLL), Version("0.18.1"))
    assert config.engine["enable_prefix_caching"].value is True
    assert config.sampling["temperature"].value == 0.95
