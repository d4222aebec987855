"""The names that `explain` knows, and those that a page sends its reader to: both come from the files."""

import pytest

from rlaudit.causes.attribution.attribute import all_causes
from rlaudit.cli.app import run
from rlaudit.cli.names import described, related
from rlaudit.cli.pages import all_names
from rlaudit.configs.dialects.declared import declared
from rlaudit.laboratory.studies.arms.plan import known_factors
from rlaudit.meaning.documented import ALL as TESTS
from rlaudit.rules import known_rules
from rlaudit.statistics.measurement.measure import all_metrics
from rlaudit.vllm.catalogue import known_versions


def test_the_names_of_files_are_the_names_of_what_they_offer() -> None:
    offered = {
        "rules": known_rules(),
        "causes": all_causes(),
        "factors": [*known_factors(), "weight-update"],
        "metrics": all_metrics(),
        "tests": TESTS,
        "frameworks": declared(),
        "versions": map(str, known_versions()),
    }
    names = described()
    assert {kind: set(names[kind]) for kind in offered} == {kind: set(of_kind) for kind, of_kind in offered.items()}
    assert set(all_names()) >= {name for files in names.values() for name in files}


@pytest.mark.parametrize(
    ("name", "kind", "other"),
    [
        ("raw-logprobs", "factors", "logprobs-mode"),
        ("raw-logprobs", "causes", "filters-not-replayed"),
        ("raw-logprobs", "tests", "token-tests"),
        ("raw-logprobs", "metrics", "mean_ratio_minus_one"),
        ("raw-logprobs", "releases", "0.10.2"),
        ("prefix-caching", "rules", "prefix-caching-on"),
        ("prefix-caching", "causes", "stale-prefix-kv"),
        ("head-dtype-ignored", "factors", "fp32-head"),
        ("token-tests", "causes", "raw-logprobs"),
        ("prime-rl", "factors", "logprobs-mode"),
        ("ess_token", "topics", "words"),
    ],
)
def test_a_page_names_what_belongs_to_it(name: str, kind: str, other: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", name]) == 0
    see_also = capsys.readouterr().out.partition("See also (rlaudit explain NAME)\n")[2]
    (line,) = [line for line in see_also.splitlines() if line.split()[0] == f"{kind}:"]
    assert other in line.replace(",", "").split()[1:]


@pytest.mark.parametrize(("name", "other"), [("verl", "0.9.0"), ("raw-logprobs", "suppression-unused")])
def test_a_page_does_not_name_what_only_looks_alike(name: str, other: str) -> None:
    assert other not in [known for names in related(name).values() for known in names]
