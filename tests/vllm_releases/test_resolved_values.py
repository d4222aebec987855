import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version
from vllm_settings import config_of, resolved
from yaml_tables import table_of

from rlaudit.settings.rollout_config import Origin
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue, known_versions
from rlaudit.vllm.machine import MACHINES, machine_named
from rlaudit.vllm.resolve import resolution_rules, resolve

V0 = {"environment": {"VLLM_USE_V1": "0"}}
TABLE = table_of(__file__)
ROWS = [
    pytest.param(name, rows[0].get("every", {}) | row, id=f"{name} {number}")
    for name, rows in TABLE.items()
    for number, row in enumerate((one for one in rows if "every" not in one), 1)
]


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_a_release_makes_of_a_config_what_the_table_says(name: str, row: dict[str, Any]) -> None:
    said = {key: row[key] for key in ("environment", "offline", "model") if key in row}
    value = resolved(row["vllm"], row.get("machine", "h100"), **said, **row.get("engine", {})).value(name)
    assert ("open" if isinstance(value, Unknown) else value) == row["is"]


def test_scheduling_is_unknown_where_the_executor_may_be_ray_and_ray_did_not_support_it() -> None:
    executor = Unknown("ray or mp, by release", ("ray", "mp"))
    assert isinstance(resolved("0.18.1", distributed_executor_backend=executor).value("async_scheduling"), Unknown)
    assert resolved("0.21.0", distributed_executor_backend=executor).value("async_scheduling") is True
    assert isinstance(
        resolved("0.21.0", distributed_executor_backend=Unknown("a class")).value("async_scheduling"), Unknown
    )
    classes = Unknown("of which release", ("ExternalRay", "ExternalZeroMQ"))
    assert resolved("0.18.1", distributed_executor_backend=classes).value("async_scheduling") is False
    assert isinstance(resolved("0.21.0", distributed_executor_backend="ExternalRay").value("async_scheduling"), Unknown)
    assert resolved("0.18.1", tensor_parallel_size=Unknown("$TP")).value("async_scheduling") is True


def test_a_written_value_keeps_its_origin() -> None:
    setting = resolved("0.18.1", enable_prefix_caching=False).setting("enable_prefix_caching")
    assert (setting.origin, setting.written) == (Origin.FILE, False)


def test_a_value_that_vllm_overrules_shows_what_was_written() -> None:
    setting = resolved("0.10.2", enable_chunked_prefill=False).setting("enable_chunked_prefill")
    assert (setting.value, setting.written, setting.origin) == (True, False, Origin.ENGINE)
    assert "ignores a written false" in setting.note


def test_a_decision_names_the_line_of_its_own_release() -> None:
    old, new = (resolved(version).setting("async_scheduling").note for version in ("0.14.0", "0.18.1"))
    assert "vllm/config/vllm.py:" in old
    assert old != new
    assert "vllm/platforms/cpu.py:" in resolved("0.18.1", "cpu").setting("async_scheduling").note


def test_an_argument_that_the_release_does_not_have_is_none_and_says_so() -> None:
    setting = resolved("0.18.1", num_scheduler_steps=8).setting("num_scheduler_steps")
    assert (setting.value, setting.written, setting.origin) == (None, 8, Origin.FILE)
    assert setting.note == "vLLM 0.18.1 has no num_scheduler_steps"


def test_an_unknown_value_of_the_file_stays_unknown() -> None:
    unknown = Unknown("$CACHE is set nowhere")
    assert resolved("0.18.1", enable_prefix_caching=unknown).value("enable_prefix_caching") is unknown


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("version", known_versions()[::6], ids=str)
def test_every_rule_decides_or_says_why_it_cannot_for_any_unknown(version: Version, machine: str) -> None:
    said = {name: Unknown("$X") for name in Catalogue.at(version).engine}
    variables = {name: Unknown("$Y") for name in ("VLLM_USE_V1", "VLLM_ATTENTION_BACKEND", "VLLM_USE_V2_MODEL_RUNNER")}
    for resolution in (
        resolved(str(version), machine),
        resolved(str(version), machine, **said),
        resolved(str(version), machine, environment=variables),
    ):
        for name in resolution_rules():
            setting = resolution.setting(name)
            assert not isinstance(setting.value, Unknown) or setting.value.reason


ODD: tuple[dict[str, Any], ...] = (
    {"pipeline_parallel_size": 2, "speculative_config": {"method": "eagle3"}},
    {"speculative_config": '{"method": "ngram"}', "task": "embed", "tensor_parallel_size": "8"},
    {"compilation_config": '{"cudagraph_mode": "FULL"}', "max_model_len": -1, "runner": "pooling"},
    {"max_model_len": "auto", "optimization_level": "3", "max_num_seqs": "64", "seed": "x"},
    {"compilation_config": [1], "attention_config": "x", "speculative_config": "{broken", "dtype": 5},
    {"override_generation_config": '{"temperature": 0.5}', "kv_cache_dtype": 8, "quantization": ["gguf"]},
)


@pytest.mark.parametrize("said", ODD, ids=str)
@pytest.mark.parametrize("version", known_versions()[::4], ids=str)
def test_values_of_any_shape_are_resolved_without_an_error(version: Version, said: dict[str, Any]) -> None:
    for machine in ("h100", "t4", "cpu"):
        resolution = resolved(str(version), machine, **said)
        assert all(resolution.setting(name).name == name for name in resolution_rules())


def test_a_rule_is_named_after_its_file() -> None:
    folder = Path(__file__).parents[2] / "rlaudit" / "vllm" / "resolution"
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == set(resolution_rules())


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(
        json.dumps({"architectures": ["Qwen3ForCausalLM"], "max_position_embeddings": 4096, "torch_dtype": "float32"})
    )
    return tmp_path


@pytest.mark.parametrize(
    ("name", "version", "value"),
    [
        ("dtype", "0.9.0", "float16"),
        ("dtype", "0.9.1", "bfloat16"),
        ("max_model_len", "0.18.1", 4096),
        ("model_runner", "0.22.0", "V2"),
        ("enable_chunked_prefill", "0.8.5", False),
        ("max_num_batched_tokens", "0.8.5", 4096),
        ("request_defaults", "0.18.1", {}),
    ],
)
def test_a_checkpoint_on_disk_settles_what_depends_on_it(name: str, version: str, value: Any, checkpoint: Path) -> None:
    assert resolved(version, model=str(checkpoint), **V0).value(name) == value


def test_a_checkpoint_with_only_the_newer_dtype_key_is_a_trap_for_old_releases(checkpoint: Path) -> None:
    (checkpoint / "config.json").write_text(json.dumps({"dtype": "bfloat16"}))
    assert isinstance(resolved("0.8.5", model=str(checkpoint)).value("dtype"), Unknown)
    assert resolved("0.18.1", model=str(checkpoint)).value("dtype") == "bfloat16"


def test_a_cache_that_the_checkpoint_quantizes_is_not_called_auto(checkpoint: Path) -> None:
    quantized = {"quantization_config": {"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}}
    (checkpoint / "config.json").write_text(json.dumps(quantized))
    assert resolved("0.13.0", model=str(checkpoint)).value("kv_cache_dtype") == "auto"
    assert isinstance(resolved("0.14.0", model=str(checkpoint)).value("kv_cache_dtype"), Unknown)


def test_penalties_of_the_models_file_count_from_0_31_on(checkpoint: Path) -> None:
    (checkpoint / "generation_config.json").write_text(json.dumps({"top_p": 0.8, "presence_penalty": 1.5}))
    assert resolved("0.30.0", model=str(checkpoint)).value("request_defaults") == {"top_p": 0.8}
    assert resolved("0.31.0", model=str(checkpoint)).value("request_defaults") == {
        "top_p": 0.8,
        "presence_penalty": 1.5,
    }
    alone = resolved("0.31.0", model=str(checkpoint), generation_config="vllm")
    assert alone.value("request_defaults") == {}


def test_broken_checkpoint_files_are_as_good_as_none(checkpoint: Path) -> None:
    (checkpoint / "config.json").write_text("{not json")
    assert isinstance(resolved("0.18.1", model=str(checkpoint)).value("dtype"), Unknown)


def test_in_an_actor_of_a_ray_placement_group_several_ranks_run_on_ray_and_are_not_scheduled_ahead():
    def placed(ranks: int, version: str) -> Any:
        config = replace(config_of(offline=True, tensor_parallel_size=ranks), placed_by_ray=True)
        return resolve(config, Catalogue.at(version), machine_named("h100"))

    assert placed(2, "0.18.1").value("distributed_executor_backend") == "ray"
    assert placed(2, "0.18.1").value("async_scheduling") is False
    assert placed(2, "0.21.0").value("async_scheduling") is True
    assert placed(1, "0.18.1").value("distributed_executor_backend") == "uni"
