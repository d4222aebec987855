import json

import pytest
from packaging.version import Version

from rlaudit.errors import UsageError
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import DATA, Catalogue, known_versions


def test_a_catalogued_release_is_exact() -> None:
    catalogue = Catalogue.at(Version("0.18.1"))
    assert (catalogue.version, catalogue.exact, catalogue.remark) == (Version("0.18.1"), True, "")


@pytest.mark.parametrize(
    ("asked", "read_as"),
    [("0.18.1+cu129", "0.18.1"), ("0.18.2", "0.18.1"), ("0.18.1rc1", "0.18.0"), ("0.8.5.post3", "0.8.5.post1")],
)
def test_a_release_in_between_is_read_as_the_nearest_older_one(asked: str, read_as: str) -> None:
    assert Catalogue.at(Version(asked)).version == Version(read_as)


def test_a_build_for_another_cuda_is_the_same_release() -> None:
    assert Catalogue.at("0.18.1+cu129").exact


def test_a_release_newer_than_the_catalogue_is_said_to_be() -> None:
    catalogue = Catalogue.at("99.0.0")
    assert catalogue.version == known_versions()[-1]
    assert "newer than any release" in catalogue.remark


@pytest.mark.parametrize("asked", ["0.8.4", "latest", ""])
def test_a_release_that_cannot_be_read_is_a_usage_error(asked: str) -> None:
    with pytest.raises(UsageError):
        Catalogue.at(asked)


def test_every_minor_release_from_the_first_to_the_newest_is_catalogued() -> None:
    minors = {version.minor for version in known_versions()}
    assert minors == set(range(8, max(minors) + 1))


@pytest.mark.parametrize("version", known_versions(), ids=str)
def test_every_catalogue_loads_and_holds_together(version: Version) -> None:
    catalogue = Catalogue.at(version)
    settable = {*catalogue.engine, *catalogue.frontend}
    assert {"enable_prefix_caching", "seed", "max_num_seqs", "dtype"} <= set(catalogue.engine)
    assert (
        catalogue.cli["enable-prefix-caching"] == catalogue.cli["no-enable-prefix-caching"] == "enable_prefix_caching"
    )
    assert catalogue.cli["tp"] == "tensor_parallel_size"
    assert len(set(catalogue.cli.values()) & settable) > 90
    assert {"temperature", "top_p", "logprobs"} <= set(catalogue.sampling)
    assert all(name.isupper() or name.endswith("_proxy") for name in catalogue.variables)
    assert catalogue.signatures["reset_prefix_cache"] is not None
    assert catalogue.routes["/reset_prefix_cache"] == "VLLM_SERVER_DEV_MODE"
    assert not [name for name, found in catalogue.resolvers.items() if not found.lines]


def test_defaults_that_only_the_running_release_knows_are_unknown() -> None:
    declared = Catalogue.at("0.8.5").engine["guided_decoding_backend"].default
    assert isinstance(declared, Unknown)
    assert "VLLM_USE_V1" in declared.reason


def test_a_config_object_says_whose_defaults_hold() -> None:
    declared = Catalogue.at("0.18.1").engine["compilation_config"]
    assert declared.config == "CompilationConfig"
    assert Catalogue.at("0.18.1").nested["compilation_config.cudagraph_mode"].default is None


def test_a_catalogue_file_is_small_and_has_one_entry_a_line() -> None:
    for path in DATA.glob("[0-9]*.json"):
        text = path.read_text(encoding="utf-8")
        data = json.loads(text)
        entries = sum(len(section) for section in data.values() if isinstance(section, dict))
        assert len(text) < 120_000
        assert text.count("\n") >= entries
