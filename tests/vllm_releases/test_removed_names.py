import pytest
from packaging.version import Version

from rlaudit.vllm.catalogue import Catalogue, known_versions
from rlaudit.vllm.lifetimes import KINDS, first_without, lifetime, names
from rlaudit.vllm.removed import ADVICE, removed

NEWEST = known_versions()[-1]


@pytest.mark.parametrize(
    ("kind", "name", "last", "gone"),
    [
        ("engine", "num_scheduler_steps", "0.10.0", "0.10.1"),
        ("engine", "max_seq_len_to_capture", "0.10.2", "0.11.0"),
        ("engine", "guided_decoding_backend", "0.11.2", "0.12.0"),
        ("engine", "swap_space", "0.17.1", "0.18.0"),
        ("sampling", "best_of", "0.11.2", "0.12.0"),
        ("variable", "VLLM_USE_V1", "0.11.0", "0.11.1"),
        ("variable", "VLLM_ATTENTION_BACKEND", "0.14.1", "0.15.0"),
        ("nested", "compilation_config.level", "0.17.1", "0.18.0"),
        ("flag", "disable-frontend-multiprocessing", "0.18.1", "0.19.0"),
    ],
)
def test_a_removed_name_is_there_until_its_last_release(kind: str, name: str, last: str, gone: str) -> None:
    assert removed(kind, name, Version(last)) is None
    found = removed(kind, name, Version(gone))
    assert found is not None
    assert (found.last, found.gone) == (Version(last), Version(gone))
    assert found.effect


def test_a_name_that_is_there_or_never_was_is_not_removed() -> None:
    assert removed("engine", "seed", NEWEST) is None
    assert removed("engine", "enable_time_travel", NEWEST) is None
    assert lifetime("engine", "enable_time_travel") is None
    assert first_without("engine", "seed") is None


def test_a_replacement_translates_the_value() -> None:
    guided = removed("engine", "guided_decoding_backend", Version("0.12.0"))
    assert guided is not None
    assert guided.replacement is not None
    name, translate = guided.replacement
    assert (name, translate("xgrammar")) == ("structured_outputs_config", {"backend": "xgrammar"})
    logs = removed("engine", "disable_log_requests", Version("0.17.0"))
    assert logs is not None
    assert logs.replacement is not None
    assert (logs.replacement[0], logs.replacement[1](True)) == ("enable_log_requests", False)


@pytest.mark.parametrize(("kind", "name"), ADVICE)
def test_advice_is_only_given_for_names_that_are_gone_and_names_what_is_there(kind: str, name: str) -> None:
    found = removed(kind, name, NEWEST)
    assert found is not None, "still there, or misspelt"
    gone = removed(kind, name, found.gone)
    assert gone is not None
    replacement = ADVICE[(kind, name)][1]
    if replacement is not None:
        assert replacement[0] in Catalogue.at(found.gone).engine


def test_a_flag_that_outlives_its_argument_is_still_taken() -> None:
    found = removed("engine", "disable_log_requests", Version("0.12.0"))
    assert found is not None
    assert "still takes the flag" in found.effect
    gone = removed("engine", "disable_log_requests", Version("0.17.0"))
    assert gone is not None
    assert "does not start" in gone.effect


@pytest.mark.parametrize(("version", "word"), [("0.15.0", "no message says so"), ("0.17.0", "Unknown vLLM")])
def test_a_variable_is_ignored_in_silence_until_0_17(version: str, word: str) -> None:
    found = removed("variable", "VLLM_ATTENTION_BACKEND", Version(version))
    assert found is not None
    assert word in found.effect


def test_the_index_agrees_with_the_catalogues() -> None:
    for kind, section in KINDS.items():
        newest = getattr(Catalogue.at(NEWEST), {"cli": "cli"}.get(section, section))
        still = {name for name in names(kind) if first_without(kind, name) is None}
        assert still == set(newest), kind


def test_everything_gone_between_the_ends_of_the_catalogue_is_listed() -> None:
    first = known_versions()[0]
    gone = {name for name in names("engine") if removed("engine", name, NEWEST)}
    assert set(Catalogue.at(first).engine) - set(Catalogue.at(NEWEST).engine) <= gone
    assert not [name for kind in KINDS for name in names(kind) if removed(kind, name, first)]
