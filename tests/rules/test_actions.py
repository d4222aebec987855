"""What a first screen says to do about a finding without a fix."""

from simulated_audit import simulated_audit

from rlaudit.rules.correction_off_and_metric_absent import RULE, check


def test_what_no_key_of_the_file_says_is_named_in_words() -> None:
    trainer = {"importance_sampling_correction": False, "logs_mismatch": False}
    (finding,) = check(
        simulated_audit({"from": "0.8.5", "to": "0.18.1", "trainer": trainer, "set_by_framework": ["logs_mismatch"]})
    )
    assert finding.rule == RULE.name and finding.action is not None
    assert finding.action.of == "logging how far rollout and trainer are apart"
