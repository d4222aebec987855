"""`probe --tokens` and `--score`: live samples as a token table, and the whole comparison with a model's scores."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import toy_server
from laboratories import Laboratory, known_model
from toy_server import NEUTRAL, Toy, serving

import rlaudit.probe.course
import rlaudit.probe.samples
from rlaudit.cli.app import run

RAW = tuple(NEUTRAL)
CACHES = (toy_server._known, toy_server._listed, toy_server._cumulative)


@pytest.fixture(autouse=True)
def samples_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few tokens a sample, and no questions of a probe but those about parameters."""
    monkeypatch.setattr(rlaudit.probe.samples, "TOKENS", 8)
    monkeypatch.setattr(rlaudit.probe.course, "checks", tuple)


@pytest.fixture
def of_a_known_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Toys serve the model that the stand-in of the trainer scores with."""
    monkeypatch.setattr(toy_server, "WORDS", known_model.VOCABULARY)
    monkeypatch.setattr(toy_server, "_logits", lambda context: np.array(known_model.logits_after(context[-1])))
    for cache in CACHES:
        cache.cache_clear()
    yield
    for cache in CACHES:
        cache.cache_clear()


def probe(folder: Path, *arguments: str) -> tuple[int, Any]:
    path = folder / "probe.json"
    code = run(["probe", *arguments, "--quiet", "--output", f"json:{path}"])
    return code, json.loads(path.read_text())


def test_samples_are_a_table_whose_columns_say_how_they_were_sampled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, compared = tmp_path / "live.parquet", tmp_path / "compare.json"
    with serving(Toy()) as address:
        code, document = probe(tmp_path, address, "--temperature", "0.7", "--top-k", "5", "--tokens", str(table))
    assert code == 1  # the trainer does not replay the filter
    rows = pq.read_table(table).to_pylist()
    assert len(rows) == 128
    assert document["probe"]["servers"][0]["tokens"] > 128 * 8
    assert {(row["temperature"], row["top_k"]) for row in rows} == {(0.7, 5)}
    for name in ("token_id", "rollout_logprob", "rollout_top_ids", "rollout_top_logprobs"):
        assert len(rows[0][name]) == 8
    # Five tokens have a probability, and the others that are listed none.
    assert np.isfinite(rows[0]["rollout_top_logprobs"][0]).sum() == 5
    assert run(["compare", str(table), "--output", f"json:{compared}"]) in (0, 3)
    (comparison,) = json.loads(compared.read_text())["comparisons"]
    assert (comparison["sampling"]["temperature"], comparison["sampling"]["top_k"]) == (0.7, 5)


@pytest.mark.usefixtures("of_a_known_model")
@pytest.mark.parametrize(("left_out", "code", "semantic"), [((), 0, "match"), (RAW, 1, "mismatch")])
def test_scores_of_a_model_judge_every_layer(
    shared_laboratory: Laboratory, tmp_path: Path, left_out: Any, code: int, semantic: str
) -> None:
    model = ["--score", str(shared_laboratory.model), "--score-dtype", "float32", "--cpu"]
    with serving(Toy(leaves_out=left_out)) as address:
        ended, document = probe(tmp_path, address, "--temperature", "0.7", *model)
    assert ended == code
    (comparison,) = document["comparisons"]
    assert comparison["path"] == address
    verdicts = [layer["verdict"] for layer in document["layers"]]
    assert verdicts[0] == semantic
    if not left_out:
        assert comparison["measurements"]["k3"]["value"] < 1e-9
        assert verdicts[1] == "match"


@pytest.mark.usefixtures("of_a_known_model")
def test_two_servers_are_compared_with_the_same_model(shared_laboratory: Laboratory, tmp_path: Path) -> None:
    model = ["--score", str(shared_laboratory.model), "--score-dtype", "float32", "--cpu"]
    table = tmp_path / "live.parquet"
    with serving(Toy()) as today, serving(Toy(seed=8)) as new:
        page = ["--output", f"html:{tmp_path / 'page.html'}"]
        code, document = probe(tmp_path, today, new, "--temperature", "0.7", "--tokens", str(table), *model, *page)
    assert code == 0
    assert "Tables of tokens" in (tmp_path / "page.html").read_text()
    assert [one["is_before"] for one in document["comparisons"]] == [True, False]
    assert [change["change"] for change in document["move"]["changes"]][:2] == ["same", "same"]
    assert document["move"]["after"]["vllm"] == "0.18.1"
    assert table.exists()
    assert (tmp_path / "live.today.parquet").exists()


def test_a_server_that_names_no_token_ids_is_not_scored_and_it_is_said_what_is_missing(
    shared_laboratory: Laboratory, tmp_path: Path
) -> None:
    table = tmp_path / "live.parquet"
    with serving(Toy(refuses=("return_tokens_as_token_ids",))) as address:
        code, document = probe(
            tmp_path, address, "--tokens", str(table), "--score", str(shared_laboratory.model), "--cpu"
        )
    assert code == 3
    assert any("return_token_ids" in line for line in document["not_seen"])
    assert "token_id" not in pq.read_schema(table).names
    assert "rollout_logprob" in pq.read_schema(table).names


def test_rollouts_that_a_server_refuses_are_not_sampled_in_another_way(tmp_path: Path) -> None:
    table = tmp_path / "live.parquet"
    with serving(Toy(refuses=("top_k",))) as address:
        code, document = probe(tmp_path, address, "--top-k", "5", "--tokens", str(table))
    assert code == 3
    assert any("refuses top_k" in line for line in document["not_seen"])
    assert not table.exists()


def test_a_budget_that_is_spent_leaves_no_half_of_a_table(tmp_path: Path) -> None:
    table = tmp_path / "live.parquet"
    with serving(Toy()) as address:
        code, document = probe(tmp_path, address, "--budget", "70", "--tokens", str(table))
    assert code == 3
    assert any("live samples" in line and "budget" in line for line in document["not_seen"])
    assert not table.exists()
