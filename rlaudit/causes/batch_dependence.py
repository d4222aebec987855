"""The same request gives other logprobs in another batch: mismatch that batches share or that grows with them.

Covered: batches that differ from each other in the size of their mismatch. The other prompts of a batch judge each
prompt, so that none explains itself. Not covered: dependence that is the same in every batch, which looks like
precision. If batches are training steps, what changes between steps comes along; a known version lag is taken out
first.
Source: Thinking Machines, "Defeating Nondeterminism in LLM Inference"; vLLM's batch invariance tests.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from rlaudit.arrays import ROUNDING, Floats, Integers
from rlaudit.causes.attribution.cause import Cause, NotTested, Outcome, Signature
from rlaudit.causes.attribution.part_signature import part_signature
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_A_VARIANCE
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.statistics.measurement.excess import CAP

NAME = "batch-dependence"
# Three degrees of freedom between them: two or three batches differ in anything.
FEWEST_BATCHES = 4
# Prompts that the mean of the other prompts of a batch is shrunk by towards the mean of all.
SHRINK = 1.0
# p-value up to which batches differ enough to be given a column; the verdict asks for ALPHA beside it.
NOT_BY_CHANCE = 0.01


def basis(evidence: TokenEvidence) -> Floats | NotTested:
    """Return (T, 1 or 2): how noisy the other prompts of the batch are beyond the quietest, and log2 of the batch size.

    Needs `evidence.excess`, fitted without this cause.
    """
    batch_T = np.asarray(evidence.columns["batch_id"], dtype=np.int64)
    batches = int(batch_T.max(initial=-1)) + 1
    if batches < FEWEST_BATCHES or evidence.excess is None:
        return NotTested(f"there are {batches} batches, and {FEWEST_BATCHES} are needed")
    if _between_batches(evidence, evidence.excess.standardised_T) > NOT_BY_CHANCE:
        # Noise of batches that differ by chance only is nearly constant, and would take the constant's place.
        return np.zeros((evidence.tokens, 0))
    others_T = _noise_of_the_others(evidence, batch_T, batches)
    if others_T is None:
        return NotTested("batches hold one prompt each, so prompt and batch cannot be separated")
    expected_T = evidence.excess.expected_T
    columns = [others_T * expected_T / float(expected_T.mean())]
    size_T = np.log2(np.asarray(evidence.columns["batch_size"], dtype=np.float64))
    if np.ptp(size_T) > 0:
        columns.append((size_T - size_T.min()) * expected_T / float(expected_T.mean()))
    return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class _Cells:
    """A cell for each prompt in each batch."""

    # Mean noise.
    means_BP: Floats
    # Whether the batch has usable tokens of the prompt.
    filled_BP: NDArray[np.bool_]
    # The cell of each token.
    cell_T: Integers


def _cells(evidence: TokenEvidence, standardised_T: Floats, batch_T: Integers, batches: int) -> _Cells:
    usable_T = np.isfinite(standardised_T)
    noise_T = np.where(usable_T, np.minimum(np.nan_to_num(standardised_T), CAP), 0.0)
    cell_T = batch_T * evidence.clusters + evidence.cluster_T
    shape, size = (batches, evidence.clusters), batches * evidence.clusters
    sums, counts = np.bincount(cell_T, noise_T, minlength=size), np.bincount(cell_T, usable_T, minlength=size)
    means = np.divide(sums, counts, out=np.zeros(size), where=counts > 0)
    return _Cells(means.reshape(shape), (counts > 0).reshape(shape), cell_T)


def _noise_of_the_others(evidence: TokenEvidence, batch_T: Integers, batches: int) -> Floats | None:
    """Return (T,) noise above the quietest. Prompts count alike: long completions are no more independent."""
    assert evidence.excess is not None
    cells = _cells(evidence, evidence.excess.standardised_T, batch_T, batches)
    prompts_B = cells.filled_BP.sum(axis=1)
    if prompts_B.max(initial=0) < 2:
        return None
    overall = float(cells.means_BP[cells.filled_BP].mean())
    total_B = cells.means_BP.sum(axis=1)
    others_BP = total_B[:, None] - cells.means_BP + SHRINK * overall
    others_BP = others_BP / np.maximum(prompts_B[:, None] - 1 + SHRINK, SHRINK)
    noise: Floats = others_BP.ravel()[cells.cell_T]
    return noise - float(noise.min())


def _between_batches(evidence: TokenEvidence, standardised_T: Floats) -> float:
    """Return the p-value of a one-way analysis of variance of log noise, prompts within batches."""
    batch_T = np.asarray(evidence.columns["batch_id"], dtype=np.int64)
    cells = _cells(evidence, standardised_T, batch_T, int(batch_T.max()) + 1)
    usable_BP = cells.filled_BP & (cells.means_BP > 0)
    groups = [np.log(means_P[usable_P]) for means_P, usable_P in zip(cells.means_BP, usable_BP, strict=True)]
    groups = [group for group in groups if group.size]
    within = sum(group.size - 1 for group in groups)
    if len(groups) < 2 or within < 1:
        return 1.0
    grand = float(np.concatenate(groups).mean())
    between = sum(group.size * (float(group.mean()) - grand) ** 2 for group in groups) / (len(groups) - 1)
    scatter = sum(float(np.square(group - group.mean()).sum()) for group in groups) / within
    # Prompts that are all as noisy as each other scatter by rounding, and so do their batches.
    rounding = (ROUNDING * max(abs(grand), 1.0)) ** 2
    return float(fdtrc(len(groups) - 1, within, between / scatter)) if scatter > rounding else 1.0


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the k2 that the prompts of a batch share."""
    batches = len(np.unique(evidence.columns["batch_id"]))
    excess = evidence.excess
    if excess is None or excess.first_standardised_T is None:
        return NotTested("batches were not looked at")
    p_value = _between_batches(evidence, excess.first_standardised_T)
    if NAME not in excess.parts:
        because = f"{batches} batches differ no more than chance"
        return Signature(p_value, 0.0, 0.0, 0.0, "k2, nats^2", False, because, 0.0, 0.0, 0.0)
    outcome = part_signature(evidence, NAME, f"is shared by the prompts of a batch ({batches} batches)")
    # Prompts are resampled, batches are not: that few batches differ by chance only the batches can tell.
    return outcome if isinstance(outcome, NotTested) else replace(outcome, p_value=max(outcome.p_value, p_value))


CAUSE = Cause(
    name=NAME,
    title="Logprobs depend on the batch",
    layer=Layer.INFERENCE_PATH,
    needs=("batch_id",),
    least=OF_A_VARIANCE,
    signature=signature,
    basis=basis,
    after_others=True,
    falsifier="batches differ as much with batch invariance on, or one request at a time",
    next="sample the same prompts alone and in a batch, or with VLLM_BATCH_INVARIANT=1",
    factor="batch-invariance",
)
