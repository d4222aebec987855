"""What pictures of a run's tokens are drawn from, arm by arm, computed while the tokens are at hand."""

from typing import Any

import numpy as np

from rlaudit.diagnosis.diagnose import Diagnosis
from rlaudit.tokens.figures.token_figures import TokenFigures


def arm_figures(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """An entry of the report's `token_figures` for each measured arm."""
    figures = []
    for block in diagnosis.blocks:
        for arm in block.measured.values():
            one = TokenFigures(arm.name, block.plan.name)
            lengths = [len(sequence.token_ids) for sequence in arm.finished.sequences]
            one.add(
                arm.scored.rollout_logprobs_T,
                arm.scored.trainer_logprobs_T,
                np.concatenate([np.arange(length) for length in lengths]),
                arm.scored.entropy_T,
            )
            figures.append(one.as_dict())
    return figures
