"""The documentation of rules, frameworks and releases that lives in the code."""

import pytest

from rlaudit.causes.attribution.attribute import all_causes
from rlaudit.cli.app import run
from rlaudit.inspection.read_configs import known_dialects
from rlaudit.inspection.suppression import RULES as ABOUT_SUPPRESSIONS
from rlaudit.rules import known_rules
from rlaudit.vllm.catalogue import known_versions


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(list(words)) == 0
    return capsys.readouterr().out


def test_every_rule_is_listed_with_its_layer_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    lines = {line.split()[0]: line for line in printed(capsys, "list", "rules").splitlines()}
    assert set(lines) == {*known_rules(), *ABOUT_SUPPRESSIONS}
    for name, rule in known_rules().items():
        assert str(rule.layer) in lines[name]
        text = printed(capsys, "explain", name)
        assert text.startswith(f"{name}\n\n")
        assert text.splitlines()[2] in lines[name]


@pytest.mark.parametrize("name", ABOUT_SUPPRESSIONS)
def test_findings_about_suppressions_are_explained(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert ABOUT_SUPPRESSIONS[name] in printed(capsys, "explain", name)


def test_frameworks_releases_and_settings_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    frameworks = printed(capsys, "list", "frameworks")
    assert all(one.title in frameworks for one in known_dialects().values())
    versions = [line.split()[0] for line in printed(capsys, "list", "versions").splitlines()]
    assert versions == [str(version) for version in known_versions()]
    assert "fail-on" in printed(capsys, "list", "settings-keys")


def test_a_framework_is_explained_and_a_wrong_name_has_a_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert "PipelineRL" in printed(capsys, "explain", "pipelinerl")
    assert run(["explain", "raw-logprob"]) == 2
    assert "did you mean raw-logprobs?" in capsys.readouterr().err
    assert run(["explain", "../rules"]) == 2


def test_every_cause_is_listed_and_explained_with_when_it_is_wrong_and_what_moves_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = {line.split()[0]: line for line in printed(capsys, "list", "causes").splitlines()}
    assert set(lines) == set(all_causes())
    for name, cause in all_causes().items():
        text = printed(capsys, "explain", name)
        assert cause.title in lines[name]
        for said in (cause.title, cause.falsifier, cause.next, cause.factor or "no factor"):
            assert said in text, name


@pytest.mark.parametrize("what", ["factors", "rules", "tests", "frameworks"])
def test_a_list_cuts_no_sentence_that_takes_two_lines_in_the_source(
    capsys: pytest.CaptureFixture[str], what: str
) -> None:
    cut = [line for line in printed(capsys, "list", what).splitlines() if not line.endswith((".", ")", "?"))]
    assert not cut


def test_a_framework_is_found_as_it_writes_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("prime-rl", "NeMo-RL", "ms_swift"):
        assert run(["explain", name]) == 0
        assert "Traceback" not in capsys.readouterr().out
