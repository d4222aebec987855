"""The token table of a run: one row per sampled token, sorted by arm, sequence and position (Parquet)."""

from pathlib import Path

import pandas as pd

from rlaudit.diagnosis.diagnose import Diagnosis
from rlaudit.diagnosis.measured import MeasuredArm


def tokens_of(diagnosis: Diagnosis) -> pd.DataFrame | None:
    """Return the tokens of every measured arm; None if nothing was measured.

    The columns are those that `compare` reads, with `block` and `arm` in front.
    """
    frames = [_frame(block.plan.name, arm) for block in diagnosis.blocks for arm in block.measured.values()]
    return pd.concat(frames, ignore_index=True) if frames else None


def write_tokens(tokens: pd.DataFrame, path: Path) -> None:
    """Write the table. Raises OSError."""
    with path.open("wb") as file:
        tokens.to_parquet(file, index=False)


def _frame(block: str, arm: MeasuredArm) -> pd.DataFrame:
    rows = [
        (sequence.prompt, sequence.sample, position, token, sequence.cached_tokens, sequence.round, ids, values)
        for sequence in arm.finished.sequences
        for position, (token, ids, values) in enumerate(
            zip(sequence.token_ids, sequence.top_ids, sequence.top_logprobs, strict=True)
        )
    ]
    names = ("prompt_id", "sample_id", "position", "token_id", "cached_tokens", "batch_id")
    frame = pd.DataFrame(rows, columns=[*names, "rollout_top_ids", "rollout_top_logprobs"])
    frame.insert(0, "block", block)
    frame.insert(1, "arm", arm.name)
    frame.insert(6, "rollout_logprob", arm.scored.rollout_logprobs_T)
    frame.insert(7, "trainer_logprob", arm.scored.trainer_logprobs_T)
    frame.insert(8, "trainer_entropy", arm.scored.entropy_T)
    return frame
