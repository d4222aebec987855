import json
import re
from itertools import pairwise

import pytest
from packaging.version import Version

from rlaudit.errors import UsageError
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue, known_versions
from rlaudit.vllm.facts import DATA, FACTS, FIELDS, KINDS, RESOLVERS, facts


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


def test_a_fact_stands_on_its_own_line_and_only_when_it_changes() -> None:
    for kind in KINDS:
        histories = facts().histories(kind).values()
        text = (DATA / FACTS / f"{kind}.json").read_text(encoding="utf-8")
        assert text.count("\n") == sum(map(len, histories)) + len("{}")
        for history in histories:
            values = [json.dumps(value) for _, value in history]
            assert values[0] != "null" and all(before != after for before, after in pairwise(values))


def test_the_line_of_every_field_and_decision_is_known() -> None:
    for release in facts().releases:
        places = [row[2] for kind in FIELDS for row in facts().of(kind, release).values()]
        decisions = facts().of(RESOLVERS, release).values()
        places += [place.partition("=")[0] for _, *decided in decisions for place in decided]
        assert not [place for place in places if not re.fullmatch(r"vllm/[\w/]+\.py:[1-9]\d*", place)]


def test_a_name_lives_until_the_release_before_it_is_gone() -> None:
    assert facts().lifetime("cli", "multi-step-stream-outputs") == ("0.8.5", "0.10.0")
    assert facts().lifetime("engine", "seed") == ("0.8.5", str(known_versions()[-1]))
    assert facts().lifetime("engine", "no_such_argument") is None
