"""Releases beside the one before, on token tables with a known change between them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from releases.drawn_tokens import drawn_cells, first_tokens, shared_tokens

PROMPTS, SAMPLES, LENGTH = 16, 2, 40
ARM = "candidate"


def table(rounded: float = 0.0, other_from: int | None = None) -> pd.DataFrame:
    """Tokens of an engine whose logprobs are `rounded` to a grid and whose tokens part from ours at a position."""
    rng = np.random.default_rng(0)
    size = PROMPTS * SAMPLES * LENGTH
    trainer_T = rng.normal(-2.0, 1.0, size)
    rollout_T = trainer_T + rng.normal(0.0, 0.01, size)
    rows = pd.MultiIndex.from_product(
        [range(PROMPTS), range(SAMPLES), range(LENGTH)], names=["prompt_id", "sample_id", "position"]
    ).to_frame(index=False)
    rows = rows.assign(block="b", arm=ARM, token_id=rng.integers(0, 99, size), trainer_logprob=trainer_T)
    rows["rollout_logprob"] = np.round(rollout_T / rounded) * rounded if rounded else rollout_T
    if other_from is not None:
        rows.loc[rows["position"] == other_from, "token_id"] += 1
    return rows


def cells(folder: Path, before: pd.DataFrame | None, after: pd.DataFrame) -> dict[str, Any]:
    for name, rows in (("before", before), ("after", after)):
        if rows is not None:
            rows.sample(frac=1.0, random_state=1).to_parquet(folder / name)  # in no order
    arm: Any = SimpleNamespace(block="b", name=ARM, role="candidate")
    return {name.rpartition("/")[2]: cell for name, _, cell in drawn_cells(folder / "after", folder / "before", [arm])}


def test_rounding_shows_on_the_same_tokens(tmp_path: Path) -> None:
    found = cells(tmp_path, table(), table(rounded=0.05))
    moved, ratio = found["moved"], found["k3_ratio"]
    assert moved.low < 0.05 / 4 < moved.high  # a grid moves a number by a quarter of its step, in the mean
    assert ratio.low > 2 and ratio.low < ratio.value < ratio.high


def test_a_release_that_changes_nothing_has_moved_by_nothing(tmp_path: Path) -> None:
    found = cells(tmp_path, table(), table())
    assert (found["moved"].value, found["k3_ratio"].value) == (0.0, 1.0)


def test_the_digest_hangs_on_first_tokens_alone(tmp_path: Path) -> None:
    assert first_tokens(table()) == first_tokens(table(other_from=3)) == cells(tmp_path, None, table())["seeds"].word
    assert first_tokens(table()) != first_tokens(table(other_from=0))


def test_tokens_are_shared_until_the_first_that_differs() -> None:
    shared = shared_tokens(table(), table(other_from=7))
    assert len(shared) == PROMPTS * SAMPLES * 7 and shared["position"].max() == 6


def test_tokens_that_a_trainer_excludes_are_not_compared() -> None:
    after = table()
    after.loc[after["position"] == 5, "trainer_logprob"] = -np.inf
    assert len(shared_tokens(table(), after)) == PROMPTS * SAMPLES * (LENGTH - 1)


def test_releases_that_share_first_tokens_only_are_not_compared(tmp_path: Path) -> None:
    assert set(cells(tmp_path, table(), table(other_from=1))) == {"seeds"}


def test_the_first_release_has_its_digest_and_nothing_to_be_compared_with(tmp_path: Path) -> None:
    assert set(cells(tmp_path, None, table())) == {"seeds"}


def test_a_second_start_is_held_against_the_first_in_tokens_and_logprobs(tmp_path: Path) -> None:
    again: Any = SimpleNamespace(block="b", name="candidate again", role="candidate again")
    for other, word in ((table(), "yes"), (table(other_from=39), "no"), (table(rounded=1e-6), "no")):
        pd.concat([table(), other.assign(arm=again.name)]).to_parquet(tmp_path / "after")
        assert [cell.word for _, _, cell in drawn_cells(tmp_path / "after", None, [again])] == [word]
        other.assign(arm=again.name).to_parquet(tmp_path / "after")
        assert not list(drawn_cells(tmp_path / "after", None, [again]))  # the first has failed


def test_a_run_without_tokens_has_no_cell(tmp_path: Path) -> None:
    assert not list(drawn_cells(tmp_path / "after", tmp_path / "before", []))
