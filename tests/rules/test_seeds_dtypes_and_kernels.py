import pytest
from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.rules.dtype_auto_trap import RULE as DTYPE
from rlaudit.rules.seed_changed import RULE as SEED_CHANGED

V0 = {"environment": {"VLLM_USE_V1": "0"}}


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


@pytest.mark.parametrize(("written", "severity"), [("float32", Severity.WARNING), ("bfloat16", None)])
def test_a_checkpoint_that_is_here_tells_what_the_dtype_becomes(tmp_path, written, severity):
    (tmp_path / "config.json").write_text(f'{{"torch_dtype": "{written}"}}', encoding="utf-8")
    example = {"from": "0.9.0.1", "to": "0.9.1", "model": str(tmp_path)}
    assert severities(DTYPE, example) == ([severity] if severity else [])
