from packaging.version import Version
from simulated_audit import findings

from rlaudit.configs.dialects.declared import declared
from rlaudit.configs.source import Source
from rlaudit.rules import known_rules
from rlaudit.rules.audit.audit import audit_of
from rlaudit.rules.changed_default import RULE
from rlaudit.severity import Severity
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.machine import Machine


def test_all_other_moved_defaults_are_one_note():
    (finding,) = findings(RULE, {"from": "0.18.1", "to": "0.32.0"})
    assert finding.severity is Severity.NOTE
    assert "gpu_memory_utilization 0.9 -> 0.92" in finding.message
    told = [name for rule in known_rules().values() for name in rule.defaults]
    assert {"async_scheduling", "seed"} <= set(told) and not any(f" {name} " in finding.message for name in told)


def test_a_rule_names_arguments_of_a_release_as_those_of_whose_defaults_it_speaks():
    known = {name for version in ("0.8.5", "0.18.1", "0.32.0") for name in Catalogue.at(Version(version)).engine}
    for rule in known_rules().values():
        assert set(rule.defaults) <= known, rule.name


def test_a_setting_of_the_config_did_not_move():
    found = findings(RULE, {"from": "0.18.1", "to": "0.32.0", "engine": {"gpu_memory_utilization": 0.9}})
    assert not any("gpu_memory_utilization" in finding.message for finding in found)


def test_collective_kernels_matter_only_with_several_gpus():
    one = {"from": "0.10.2", "to": "0.18.1", "environment": {"VLLM_USE_V1": "1"}}
    assert not any("ALLREDUCE" in finding.message for finding in findings(RULE, one))
    (finding,) = findings(RULE, one | {"engine": {"tensor_parallel_size": 2}})
    assert "VLLM_ALLREDUCE_USE_SYMM_MEM" in finding.message


def test_a_default_that_is_decided_later_is_not_called_different():
    assert not any("None" in finding.message for finding in findings(RULE, {"from": "0.18.1", "to": "0.32.0"}))


def test_variables_of_an_engine_that_another_command_starts_are_not_called_left_to_vllm():
    text = "use_vllm: true\nvllm_mode: server\nnum_generations: 4\n"
    versions = (Version("0.8.5"), Version("0.18.1"))
    before, after = (declared()["trl"].read(Source("x.yaml", text), version)[0] for version in versions)
    assert not list(RULE.check(audit_of(before, after, versions, Machine())))
