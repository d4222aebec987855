"""Columns with gaps, in the search for causes: every value of a column that is used must be there.

Few sequences with a gap are left out; if they are many, the column is, as if it had not been logged. Both are reported.
One gap must neither stop a comparison nor take a column, and with it a verdict, away from all other sequences.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.tokens.data_share import MOST_LEFT_OUT
from rlaudit.tokens.token_batch import LINE, MISSING_TOP, TOPS, Column, TokenBatch

# A lattice of logits shows in differences: the best two.
NARROWEST_TOP = 2


def complete(batch: TokenBatch, sequences_may_go: bool = True) -> tuple[TokenBatch, tuple[str, ...]]:
    """Return the batch without gaps in the columns that it keeps, and what was left out, in sentences.

    sequences_may_go: if not, because other arrays are by sequence, a column goes for a single gap.
    """
    batch, notes = _without_empty_tops(batch)
    gaps_S = {name: _gaps(batch, values) for name, values in batch.token_columns.items()}
    gaps_S |= {name: np.isnan(values) for name, values in batch.sequence_columns.items() if name != LINE}
    most = MOST_LEFT_OUT * batch.sequences if sequences_may_go else 0.0
    rare = [name for name, gap_S in gaps_S.items() if 0 < gap_S.sum() <= most]
    often = {name: int(gap_S.sum()) for name, gap_S in gaps_S.items() if gap_S.sum() > most}
    notes += [
        f"column {name} is not used: {count} of {batch.sequences} sequences have a gap in it"
        for name, count in often.items()
    ]
    batch = replace(
        batch,
        token_columns={name: values for name, values in batch.token_columns.items() if name not in often},
        sequence_columns={name: values for name, values in batch.sequence_columns.items() if name not in often},
    )
    if not rare:
        return batch, tuple(notes)
    gap_S = np.any([gaps_S[name] for name in rare], axis=0)
    notes.append(
        f"no cause is looked for in {int(gap_S.sum())} of {batch.sequences} sequences: a gap in {', '.join(rare)}"
    )
    return batch.take(np.flatnonzero(~gap_S)), tuple(notes)


def _gaps(batch: TokenBatch, values_T: Column) -> NDArray[np.bool_]:
    """Return the sequences that lack a value of a token that the loss counts."""
    if np.asarray(values_T).dtype.kind != "f":
        return np.zeros(batch.sequences, dtype=np.bool_)
    missing_T = np.isnan(values_T) & batch.counts_T
    return np.bincount(batch.sequence_T[missing_T], minlength=batch.sequences) > 0


def _without_empty_tops(batch: TokenBatch) -> tuple[TokenBatch, list[str]]:
    notes, changed = [], dict[str, Any]()
    for name, field in TOPS.items():
        values_TK = getattr(batch, field)
        if values_TK is None:
            continue
        missing = MISSING_TOP[name]
        if not (values_TK != missing).any():
            notes.append(f"column {name} is not used: no list in it has an entry")
            changed[field] = None
        elif values_TK.shape[1] < NARROWEST_TOP:
            wider = ((0, 0), (0, NARROWEST_TOP - values_TK.shape[1]))
            changed[field] = np.pad(values_TK, wider, constant_values=missing)
    return (replace(batch, **changed) if changed else batch), notes
