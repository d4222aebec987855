"""What a release draws from given seeds, and how its logprobs of the same tokens differ from the release before.

Releases that draw alike from a seed sample the same tokens until rounding parts them. On the tokens that both have, the
engines are compared with each other: that shows changes far below the distance to a trainer, which has an interval of
its own in each release.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from releases.cells import figure_cell, word_cell
from rlaudit.report.parts.ablation import Arm
from rlaudit.report.parts.releases import Cell
from rlaudit.statistics.metrics.k3 import k3
from rlaudit.statistics.resample import Resampled, cluster_sums, cluster_weights, clusters_of, ratio, resampled

SEQUENCE = ["prompt_id", "sample_id"]
COLUMNS = ["block", "arm", *SEQUENCE, "position", "token_id", "rollout_logprob", "trainer_logprob"]
# Of the tokens of a release. With fewer, the two draw differently and share what chance leaves.
LEAST_SHARED = 0.1


def drawn_cells(tokens: Path, tokens_before: Path | None, arms: Sequence[Arm]) -> Iterator[tuple[str, str, Cell]]:
    """Yield name, title and cell of what each arm sampled.

    tokens: the token table of the release's run; a run without samples has none. tokens_before: that of the release
    before.
    """
    drawn, drawn_before = (_by_arm(path) for path in (tokens, tokens_before))
    for arm in arms:
        key = arm.block, arm.name
        if key not in drawn:
            continue
        place, title = f"{arm.block}/{arm.name}", f"{arm.block}, {arm.name}"
        first = drawn.get((arm.block, "candidate"))
        if arm.role == "candidate again" and first is not None:
            same = drawn_alike(first, drawn[key])
            yield f"{place}/same", f"{title}: same tokens and logprobs, bit for bit", word_cell("yes" if same else "no")
        if arm.role == "candidate":
            digest = first_tokens(drawn[key])
            yield f"{place}/seeds", f"{title}: first tokens (digest)", word_cell(digest)
        if key not in drawn_before:
            continue
        shared = shared_tokens(drawn_before[key], drawn[key])
        if len(shared) >= LEAST_SHARED * len(drawn[key]):
            yield f"{place}/moved", f"{title}: logprob change per release (nats)", _figure(moved_by(shared))
            yield f"{place}/k3_ratio", f"{title}: k3 / k3 of the release before", _figure(k3_ratio(shared))


def drawn_alike(first: pd.DataFrame, second: pd.DataFrame) -> bool:
    """Return whether two runs of one engine drew the same tokens and reported the same logprobs."""
    columns = [*SEQUENCE, "position", "token_id", "rollout_logprob"]
    runs = (run[columns].sort_values(columns[:3], ignore_index=True) for run in (first, second))
    return next(runs).equals(next(runs))


def first_tokens(drawn: pd.DataFrame) -> str:
    """Return a digest of the first token of each sequence.

    It hangs on the prompt and the seed alone. Later tokens hang on rounding as well: a release that rounds otherwise
    would look as if its sampler had changed.
    """
    first = drawn[drawn["position"] == 0].sort_values(SEQUENCE)["token_id"].to_numpy(dtype="<i8")
    return hashlib.sha256(first.tobytes()).hexdigest()[:6]


def shared_tokens(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each token that both drew after the same text, with columns of both; finite logprobs only."""
    rows = before.merge(after, on=[*SEQUENCE, "position"], suffixes=("_before", "_after")).sort_values(
        [*SEQUENCE, "position"]
    )
    same = rows["token_id_before"] == rows["token_id_after"]
    rows = rows.loc[same.groupby([rows[name] for name in SEQUENCE]).cummin()]
    logprobs = rows[[name for name in rows.columns if "logprob" in name]]
    return rows.iloc[np.flatnonzero(np.isfinite(logprobs.to_numpy()).all(axis=1))]


def moved_by(shared: pd.DataFrame) -> Resampled:
    """Return the mean absolute difference of the engines' logprobs, in nats."""
    moved_T = (shared["rollout_logprob_after"] - shared["rollout_logprob_before"]).abs().to_numpy()
    return _resampled(shared, moved_T, np.ones_like(moved_T))


def k3_ratio(shared: pd.DataFrame) -> Resampled:
    """Return k3 of the release over k3 of the one before: above 1 it is farther from the trainer."""
    k3_after_T, k3_before_T = (
        k3((shared[f"trainer_logprob_{side}"] - shared[f"rollout_logprob_{side}"]).to_numpy())
        for side in ("after", "before")
    )
    return _resampled(shared, k3_after_T, k3_before_T)


def _by_arm(tokens: Path | None) -> dict[tuple[str, str], pd.DataFrame]:
    if tokens is None or not tokens.is_file():
        return {}
    table = pd.read_parquet(tokens, columns=COLUMNS)
    return {(str(block), str(arm)): rows for (block, arm), rows in table.groupby(["block", "arm"])}


def _resampled(shared: pd.DataFrame, above_T: np.ndarray, below_T: np.ndarray) -> Resampled:
    cluster_T = clusters_of(shared["prompt_id"].to_numpy())
    clusters = int(cluster_T.max()) + 1
    sums_PJ = cluster_sums([above_T, below_T], cluster_T, clusters)
    return resampled(sums_PJ, cluster_weights(clusters), ratio)


def _figure(figure: Resampled) -> Cell:
    return figure_cell(figure.value, *figure.percentiles())
