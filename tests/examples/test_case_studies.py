"""The case studies: public threads rebuilt as data, and whether rlaudit names the cause that was found there."""

import sys
from pathlib import Path

import pytest
from transcripts import change, difference

STUDIES = Path(__file__).parents[2] / "examples" / "case-studies"
CASES = sorted(path.parent for path in STUDIES.glob("*/command.txt"))
# What each thread came to, as lines of the report: a cause stands at the end of its line, with no other one beside it.
SEMANTIC, PATH = "1. semantic  MISMATCH: ", "2. inference path  MISMATCH: "
PUBLISHED: dict[str, tuple[str, ...]] = {
    "trl-4159-raw-logprobs": (f"{SEMANTIC}raw-logprobs",),
    "trl-7269-kept-mass": (f"{SEMANTIC}filters-not-replayed", "1. semantic  NOTHING FOUND"),
    "nemo-rl-69-top-k-top-p": (f"{SEMANTIC}filters-not-replayed",),
    "ms-swift-8427-shifted-mask": (f"{SEMANTIC}off-by-one", f"{SEMANTIC}trainer-temperature"),
    "art-140-generation-config": (f"{SEMANTIC}penalty", "generation-config-auto"),
    "rllm-816-encoded-again": (f"{SEMANTIC}retokenised",),
    "skyrl-1250-abort-without-effect": (f"{PATH}stale-weights",),
    "trl-5312-reloaded-checkpoint": (f"{PATH}wrong-weights",),
    "nemo-rl-4018-stale-prefix-cache": (f"{PATH}stale-prefix-kv", "error prefix-cache-across-updates"),
    "areal-827-false-dropped": (f"{PATH}stale-prefix-kv", "error written-false-dropped"),
    # The dump has no cached_tokens: what can be said is what the config says, and no more.
    "prime-rl-1650-prefix-cache-without-reset": ("prefix-cache-across-updates", "no known cause has this pattern"),
    "nemo-rl-3936-one-sided-head": (f"{PATH}head-precision", "2. inference path  MATCH"),
    "pipelinerl-137-v0-to-v1": ("error raw-logprobs", "Order: logprobs first", f"{SEMANTIC}raw-logprobs"),
}


def test_a_difference_is_shown_and_the_last_digits_of_a_number_are_none() -> None:
    expected = "k2 0.5, adjusted p 3e-9\na\nb\n"
    assert not difference("k2 0.501, adjusted p 2e-10\na\nb\n", expected)
    assert "-k2 0.5, adjusted p 3e-9\n+k2 0.6, adjusted p 3e-9" in difference(expected.replace("0.5", "0.6"), expected)
    assert "+new" in difference(expected + "new\n", expected)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_study_prints_what_stands_beside_it(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    different = change(case, tmp_path, monkeypatch, capsys)
    assert not different, different


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_cause_that_was_found_in_the_thread_is_named_and_no_other(case: Path) -> None:
    printed = (case / "expected.txt").read_text(encoding="utf-8")
    for line in PUBLISHED[case.name]:
        named = [found for found in printed.splitlines() if line in found]
        assert named, f"nothing says {line!r}"
        assert not line.startswith((SEMANTIC, PATH)) or any(found.endswith(line) for found in named), named
    # No model here has experts to route to.
    assert "moe-routing: " not in printed


def test_every_case_study_names_its_thread_and_stands_in_the_list() -> None:
    listed = (STUDIES / "README.md").read_text(encoding="utf-8")
    assert {case.name for case in CASES} == set(PUBLISHED)
    for case in CASES:
        story = (case / "README.md").read_text(encoding="utf-8")
        assert "https://github.com/" in story
        assert f"[{case.name}]({case.name})" in listed


def test_the_data_are_small() -> None:
    sizes = [path.stat().st_size for path in STUDIES.rglob("*") if path.suffix in {".jsonl", ".parquet", ".log"}]
    assert max(sizes) <= 300_000
    assert sum(sizes) <= 2_000_000


def test_the_data_can_be_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(STUDIES))
    from make_data import CASES as MADE
    from make_data import make

    assert set(MADE) == {case.name for case in CASES}
    make("skyrl-1250-abort-without-effect", tmp_path)
    made = (tmp_path / "rollouts.jsonl").read_text(encoding="utf-8")
    committed = (STUDIES / "skyrl-1250-abort-without-effect" / "rollouts.jsonl").read_text(encoding="utf-8")
    assert len(made.splitlines()) == len(committed.splitlines())
    assert "rlaudit" not in {name.partition(".")[0] for name in vars(sys.modules["make_data"])}
