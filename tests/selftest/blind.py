"""A world in which something is planted, and what is said of it from its observation alone."""

from dataclasses import dataclass

import numpy as np
from token_tables import with_columns
from worlds.ground import Ground
from worlds.observe import Observation, observe
from worlds.plant import Dose, healthy

from rlaudit.causes.attribution.attribute import Attribution, attribute
from rlaudit.errors import UsageError
from rlaudit.meaning.from_scores import identify
from rlaudit.meaning.token_evidence import token_evidence
from rlaudit.tokens.alignment import alignment_report
from rlaudit.tokens.first_look import FirstLook, first_look
from selftest.faults import all_faults

CLEAN = "clean"


@dataclass(frozen=True)
class Label:
    """What was planted: causes (none for a clean world) with a dose each."""

    causes: tuple[str, ...] = ()
    doses: tuple[Dose, ...] = ()

    @property
    def name(self) -> str:
        """As a row of the confusion matrix."""
        return " + ".join(self.causes) or CLEAN


def planted(ground: Ground, label: Label, floor_k2: float, rng: np.random.Generator) -> Observation:
    """The observation of a world in which the label is true. Raises UsageError for a cause that cannot be planted."""
    faults = all_faults()
    plant = healthy(ground)
    for cause, dose in zip(label.causes, label.doses, strict=True):
        if cause not in faults:
            raise UsageError(f"no fault {cause!r} to plant", f"there are: {', '.join(faults)}")
        plant = faults[cause].plant(plant, ground, dose, rng)
    return observe(ground, plant, floor_k2, rng)


def judge(observation: Observation) -> Attribution:
    """What `compare` would say, from the observation alone."""
    batch = with_columns(
        observation.batch,
        base_logprob=observation.base_logprob_T,
        prompt_tokens=observation.prompt_tokens_T,
        seen_before=observation.seen_T,
    )
    # Worlds have no mask but that of one fault; what else the first look finds has tests of its own.
    look = first_look([batch]) if "loss_mask" in batch.token_columns else FirstLook()
    batch = look.applied(batch)
    alignment = alignment_report(batch)
    meaning = None
    if not alignment.refused:
        meaning = identify(observation.scored, observation.sampling, observation.trainer, observation.floor_k2)
    evidence = token_evidence(
        batch,
        sampling=observation.sampling,
        trainer=observation.trainer,
        scored=observation.scored,
        meaning=meaning,
        alignment=alignment,
        floor_k2=observation.floor_k2,
        mask_off=look.mask_off,
    )
    return attribute(evidence)
