"""Weights that are broadcast to real engines on a CPU, parameter by parameter.

V0 takes each with model.load_weights, as PipelineRL's worker does; V1's CPU builds compute with packed copies, so
there the engine's own reload is given what arrives. A norm is never packed: its fingerprint can be read everywhere.
"""

from pathlib import Path

import pytest
from tiny_updates import held, idle, in_flight, samples, updated, went_on

from rlaudit.engines.cells.launch import Outcome

pytestmark = pytest.mark.engine

SKIPPED = "model.layers.1.input_layernorm"
CASES = [idle("idle"), in_flight("in flight")]
PATHS = {"0.8.5": "load_weights", "0.32.0": "reload_from_iterator"}


@pytest.fixture(scope="module", params=PATHS)
def broadcast(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Outcome]:
    version, folder = request.param, tmp_path_factory.mktemp("broadcast")
    return version, folder, updated(version, folder, CASES, transport="broadcast", path=PATHS[version])


def test_the_transport_that_ran_is_told_with_what_it_went_over(broadcast: tuple[str, Path, Outcome]) -> None:
    told = broadcast[2].result["transport"]
    assert told == {"name": "broadcast", "backend": "gloo", "because": "the engine is on a CPU"}


@pytest.mark.parametrize("case", ["idle", "in flight"])
def test_every_parameter_arrives_with_requests_in_flight_and_without(
    broadcast: tuple[str, Path, Outcome], case: str
) -> None:
    found = held(broadcast[2], case)
    assert found[SKIPPED + ".weight"] == "1" and set(found.values()) == {"1"}


def test_requests_in_flight_go_on_under_the_weights_that_came(broadcast: tuple[str, Path, Outcome]) -> None:
    assert all(went_on(broadcast[1], "in flight"))


@pytest.mark.parametrize("version", PATHS)
def test_a_parameter_that_is_left_out_is_the_only_one_read_back_as_old(version: str, tmp_path: Path) -> None:
    cases = [in_flight("one left out")]
    outcome = updated(version, tmp_path, cases, transport="broadcast", path=PATHS[version], without=SKIPPED)
    found = held(outcome, "one left out")
    assert [name for name, version in found.items() if version == "0"] == [SKIPPED + ".weight"]


@pytest.mark.parametrize("broadcast", ["0.32.0"], indirect=True)
def test_what_is_sampled_afterwards_is_what_files_on_disk_would_have_given(
    broadcast: tuple[str, Path, Outcome], tmp_path: Path
) -> None:
    version, folder, _ = broadcast
    updated(version, tmp_path, [idle("idle")], transport="disk")
    ours, theirs = samples(folder, "idle", "after"), samples(tmp_path, "idle", "after")
    assert [row["token_ids"] for row in ours] == [row["token_ids"] for row in theirs]
    assert [row["logprobs"] for row in ours] == [pytest.approx(row["logprobs"], abs=1e-5) for row in theirs]
