"""`rlaudit explain 0.26.0`: what a release decides, what moved in it, and the defects that it has."""

import pytest

from rlaudit.cli.app import run
from rlaudit.cli.release_page import release_page
from rlaudit.vllm.catalogue import known_versions
from rlaudit.vllm.measured import Measured


@pytest.mark.parametrize("version", [str(one) for one in known_versions()])
def test_every_catalogued_release_has_a_page(version: str) -> None:
    page = release_page(version)
    assert page is not None and page.startswith(f"vLLM {version}\n\nWhat an API server runs with")
    assert "logprobs_semantics: " in page and "Known defects" in page
    assert ("What moved since" in page) == (version != str(known_versions()[0]))


def test_what_a_release_brought_and_fixed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "0.26.0"]) == 0
    page = capsys.readouterr().out
    mended, brought = (
        page.split(f"\n\n{title}")[1].split("\n\n")[0]
        for title in ("Fixed defects of 0.25.1", "New defects since 0.25.1")
    )
    assert "head-dtype-ignored" in mended and "rounded-processed-logprobs" in brought


def test_what_was_measured_stands_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = {
        "plain/candidate/logprobs": {"value": None, "low": None, "high": None, "word": "raw", "claimed": "raw"},
        "plain/candidate/k3": {"value": 0.07, "low": 0.06, "high": 0.08, "word": None, "claimed": None},
        "engine": {"value": None, "low": None, "high": None, "word": "V1", "claimed": "V1"},
    }
    titles = {"plain/candidate/logprobs": "plain, candidate: logprobs", "plain/candidate/k3": "plain, candidate: k3"}
    found = Measured("cpu, a processor", "2026-11-26", cells, {**titles, "engine": "engine"})
    monkeypatch.setattr("rlaudit.cli.release_page.measured_by_all", lambda _version, on: [found] if on == "cpu" else [])
    page = release_page("0.26.0")
    assert page is not None
    assert page.endswith(
        "Measured on 2026-11-26 with the CPU build of a third party (cpu, a processor): block, engine, figures\n"
        "  plain, candidate: logprobs = raw; k3 = 0.07 [0.06, 0.08]"
    )


def test_a_release_that_is_not_catalogued_has_no_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "0.7.0"]) == 2
    assert "vLLM 0.7.0 is not among the releases that rlaudit knows, 0.8.5 to " in capsys.readouterr().err
