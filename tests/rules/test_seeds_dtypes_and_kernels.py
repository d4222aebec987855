import pytest
from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.rules.dtype_auto_trap import RULE as DTYPE
from rlaudit.rules.fuse_allreduce_rms import RULE as FUSED
from rlaudit.rules.kv_cache_dtype_from_checkpoint import RULE as KV_CACHE
from rlaudit.rules.model_runner_v2 import RULE as RUNNER
from rlaudit.rules.prefix_caching_hash import RULE as HASH
from rlaudit.rules.seed_changed import RULE as SEED_CHANGED
from rlaudit.rules.seed_shared_by_replicas import RULE as SEED_SHARED

V0 = {"environment": {"VLLM_USE_V1": "0"}}
TP2 = {"from": "0.16.0", "to": "0.18.1", "engine": {"tensor_parallel_size": 2}}


def severities(rule, example):
    return [finding.severity for finding in findings(rule, example)]


def test_starts_do_not_repeat_each_other_where_the_framework_seeds_its_engines():
    example = {"from": "0.8.5", "to": "0.18.1", "at_from": V0}
    (left,) = findings(SEED_CHANGED, example)
    (seeded,) = findings(SEED_CHANGED, {**example, "trainer": {"seeds_replicas": True}})
    assert "repeat each other" in left.message
    assert "repeat" not in seeded.message and "seeds its engines" in seeded.message


def test_starts_do_not_repeat_each_other_where_requests_have_seeds():
    example = {"from": "0.8.5", "to": "0.18.1", "at_from": V0, "sampling": {"seed": 5}}
    (seeded,) = findings(SEED_CHANGED, example)
    assert "repeat" not in seeded.message and "Every request" in seeded.message


def test_replicas_that_share_a_seed_sample_alike_whether_it_is_set_or_vllm_s_own():
    shared = {"trainer": {"replicas": 4, "seeds_replicas": False}}
    assert severities(SEED_SHARED, {"to": "0.18.1"} | shared) == [Severity.WARNING]
    assert severities(SEED_SHARED, {"to": "0.18.1", "engine": {"seed": 7}} | shared) == [Severity.WARNING]


def test_replicas_that_v0_leaves_unseeded_differ():
    assert not findings(SEED_SHARED, {"to": "0.8.5", "trainer": {"replicas": 4, "seeds_replicas": False}} | V0)


def test_seeding_that_is_not_told_is_not_reported():
    assert not findings(SEED_SHARED, {"to": "0.18.1", "trainer": {"replicas": 4}})
    assert not findings(SEED_SHARED, {"to": "0.18.1", "trainer": {"replicas": 1, "seeds_replicas": False}})


def test_requests_with_seeds_of_their_own_do_not_repeat_each_other():
    shared = {"trainer": {"replicas": 4, "seeds_replicas": False}, "sampling": {"seed": 3}}
    assert not findings(SEED_SHARED, {"to": "0.18.1"} | shared)


@pytest.mark.parametrize(("version", "shared"), [("0.31.0", True), ("0.32.0", False)])
def test_data_parallel_ranks_share_their_seed_until_0_32(version, shared):
    assert severities(SEED_SHARED, {"to": version, "engine": {"data_parallel_size": 2}}) == [Severity.WARNING] * shared


def test_a_seed_that_vllm_now_sets_by_itself_is_a_note():
    assert severities(SEED_CHANGED, {"from": "0.8.5", "to": "0.18.1", "at_from": V0}) == [Severity.NOTE]
    assert not findings(SEED_CHANGED, {"from": "0.12.0", "to": "0.18.1"})
    assert severities(SEED_CHANGED, {"from": "0.31.0", "to": "0.32.0", "engine": {"data_parallel_size": 2}})


def test_an_open_dtype_is_reported_across_0_9_1_and_before_it_against_a_bfloat16_trainer():
    assert severities(DTYPE, {"from": "0.9.0.1", "to": "0.9.1"}) == [Severity.NOTE]
    assert severities(DTYPE, {"to": "0.8.5", "trainer": {"dtype": "bfloat16"}}) == [Severity.WARNING]
    assert not findings(DTYPE, {"to": "0.8.5"})
    assert not findings(DTYPE, {"from": "0.9.1", "to": "0.18.1", "trainer": {"dtype": "bfloat16"}})


@pytest.mark.parametrize("value", ["bfloat16", {"unknown": "$DTYPE is set nowhere in this file"}])
def test_a_written_dtype_is_taken_as_meant(value):
    assert not findings(DTYPE, {"from": "0.8.5", "to": "0.18.1", "engine": {"dtype": value}})


def test_a_quantised_checkpoint_may_quantise_the_cache_from_0_14():
    named = {"from": "0.13.0", "to": "0.18.1", "model": "example/Some-8B-FP8"}
    (finding,) = findings(KV_CACHE, named)
    assert finding.severity is Severity.WARNING
    assert finding.fix is not None
    assert not finding.fix.safe
    assert not findings(KV_CACHE, named | {"model": "example/Some-8B"})
    assert not findings(KV_CACHE, named | {"from": "0.14.0"})
    assert severities(KV_CACHE, {"from": "0.13.0", "to": "0.18.1", "engine": {"quantization": "fp8"}})


@pytest.mark.parametrize(("version", "rejected"), [("0.10.1.1", False), ("0.10.2", True), ("0.32.0", True)])
def test_the_builtin_hash_is_rejected_from_0_10_2(version, rejected):
    example = {"to": version, "engine": {"prefix_caching_hash_algo": "builtin"}}
    assert severities(HASH, example) == [Severity.ERROR] * rejected
    assert not findings(HASH, {"to": version, "engine": {"prefix_caching_hash_algo": "sha256"}})


def test_fused_all_reduce_is_reported_for_tensor_parallelism_on_a_device_that_fuses():
    (finding,) = findings(FUSED, TP2)
    assert finding.severity is Severity.WARNING
    assert finding.fix is not None
    assert finding.fix.safe


@pytest.mark.parametrize("change", [
    {"engine": {"tensor_parallel_size": 1}},
    {"machine": {"gpu": "sm80"}},
    {"machine": {"flashinfer": False}},
    {"from": "0.17.0"},
    {"engine": {"tensor_parallel_size": 2, "enforce_eager": True}},
    {"engine": {"tensor_parallel_size": 2, "optimization_level": 1}},
    {"engine": {"tensor_parallel_size": 2, "data_parallel_size": 2}},
    {"engine": {"tensor_parallel_size": 2, "compilation_config": {"pass_config": {"fuse_allreduce_rms": False}}}},
])  # fmt: skip
def test_fused_all_reduce_is_silent_where_nothing_is_fused_or_it_is_chosen(change):
    assert not findings(FUSED, TP2 | change)


def test_fused_all_reduce_came_to_data_parallel_engines_in_0_21():
    both = {"tensor_parallel_size": 2, "data_parallel_size": 2}
    assert findings(FUSED, {"from": "0.16.0", "to": "0.21.0", "engine": both})


@pytest.mark.parametrize(("before", "after", "severity"), [
    ("0.21.0", "0.22.0", Severity.NOTE), ("0.21.0", "0.25.0", Severity.NOTE), ("0.21.0", "0.32.0", Severity.WARNING),
])  # fmt: skip
def test_the_second_model_runner_is_reported_by_how_many_models_it_takes(before, after, severity):
    assert severities(RUNNER, {"from": before, "to": after}) == [severity]


def test_a_pinned_runner_a_cpu_or_versions_on_one_side_of_the_switch_are_silent():
    crossing = {"from": "0.21.0", "to": "0.32.0"}
    assert not findings(RUNNER, crossing | {"environment": {"VLLM_USE_V2_MODEL_RUNNER": "0"}})
    assert not findings(RUNNER, crossing | {"machine": {"platform": "cpu", "gpu": ""}})
    assert not findings(RUNNER, {"from": "0.18.1", "to": "0.21.0"})
    assert not findings(RUNNER, {"from": "0.29.0", "to": "0.32.0"})


@pytest.mark.parametrize(("written", "severity"), [("float32", Severity.WARNING), ("bfloat16", None)])
def test_a_checkpoint_that_is_here_tells_what_the_dtype_becomes(tmp_path, written, severity):
    (tmp_path / "config.json").write_text(f'{{"torch_dtype": "{written}"}}', encoding="utf-8")
    example = {"from": "0.9.0.1", "to": "0.9.1", "model": str(tmp_path)}
    assert severities(DTYPE, example) == ([severity] if severity else [])
