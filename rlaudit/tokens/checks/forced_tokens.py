"""Tokens at the head of completions that no sampler drew: `<think>` and the like, put there by a template.

Samples of one prompt have the same token there in nearly all prompts, although its reported probability says that they
would not. So has a sampler that is sharper than it reports, but not there alone: what is left out here is judged
without, and shows it all the same.
Covered: the same words for all prompts, and words of each prompt.
Not covered: words that few prompts have; words in the middle; one token that is likely anyway. A loss mask says it all.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.tokens.first_look import Check, Finding, Places
from rlaudit.tokens.token_batch import NO_TOKEN, TokenBatch

# Of the prompts, or sequences, that have to agree at a place.
NEARLY_ALL = 0.95
# Bernstein's bound on the chance that so many agree: noise on logprobs moves it by some powers of e.
ALPHA = 1e-6
FEWEST_GROUPS, FEWEST_SEQUENCES = 4, 8
# A template's words; copies of whole completions agree for longer.
LONGEST = 32
# What is left of the log once forced tokens are left out; less than this, and samples are copies.
LEAST_LEFT = 0.5
SHOWN = 5


def look(batch: TokenBatch) -> Iterator[Finding]:
    """Yield the tokens at the head of completions that were not drawn."""
    if batch.has_hashed_ids or not np.isfinite(batch.rollout_logprobs_T[batch.counts_T]).all():
        return
    groups_S = _groups(batch)
    alive_S = np.arange(batch.sequences)
    forced: list[int] = []
    agreeing, several, same = 0, 0, True
    for place in range(LONGEST):
        alive_S = alive_S[batch.lengths_S[alive_S] > place]
        if len(alive_S) < FEWEST_SEQUENCES:
            break
        row_N = batch.offsets[alive_S] + place
        ids_N, counts_N = batch.token_id_T[row_N], batch.counts_T[row_N]
        if (ids_N == NO_TOKEN).any() or not counts_N.all():
            break
        p_N = np.exp(batch.rollout_logprobs_T[row_N])
        whole = _one_token(ids_N, p_N)
        by_group = _groups_agree(groups_S[alive_S], ids_N, p_N)
        if whole is None and by_group is None:
            break
        if place == 0 or by_group is not None:
            agreeing, several = by_group or (agreeing, several)
        same &= whole is not None
        forced.append(place)
        modal_N = _modal(np.zeros_like(alive_S) if whole is not None else groups_S[alive_S], ids_N)
        alive_S = alive_S[modal_N]
    else:
        return
    if not forced or len(forced) * batch.sequences > (1 - LEAST_LEFT) * batch.tokens:
        return
    tokens = "token" if len(forced) == 1 else f"{len(forced)} tokens"
    ids = batch.token_id_T[batch.offsets[alive_S[:1]][:, None] + np.array(forced)][:, :SHOWN].tolist()
    of_all = f"all completions begin with the same {tokens} (ids {', '.join(map(str, *ids))})"
    of_prompts = f"all samples of {agreeing} of {several} prompts begin with the same {tokens}"
    yield Finding(
        f"{of_all if same else of_prompts}, which the reported probabilities rule out. So a template put these tokens "
        "there, and no sampler drew them. They are left out here: log loss_mask 0 for these tokens",
        not_drawn=Places(positions=tuple(forced)),
    )


def _groups(batch: TokenBatch) -> Integers:
    """Return (S,) the number of each sequence's prompt and step."""
    step_S = batch.sequence_columns.get("step", np.zeros(batch.sequences))
    _, group_S = np.unique(np.stack([batch.prompt_S, step_S]), axis=1, return_inverse=True)
    return np.asarray(group_S).reshape(-1)


def _one_token(ids_N: Integers, p_N: Floats) -> bool | None:
    """Return True if nearly all sequences have one token that so many would not have drawn; else None."""
    modal_N = _modal(np.zeros_like(ids_N), ids_N)
    agree = modal_N.mean() >= NEARLY_ALL
    # What the others give it is not reported; what they drew instead they drew as likely at least.
    chance_N = np.where(modal_N, p_N, p_N[modal_N].mean() if modal_N.any() else 0.0)
    return True if agree and _surprising(modal_N.astype(float), chance_N) else None


def _groups_agree(group_N: Integers, ids_N: Integers, p_N: Floats) -> tuple[int, int] | None:
    """Return in how many groups all samples have one token, and of how many; None if that is no surprise."""
    _, group_N, size_G = np.unique(group_N, return_inverse=True, return_counts=True)
    modal_N = _modal(group_N, ids_N)
    agree_G = np.bincount(group_N, modal_N) == size_G
    # All the others draw what one has drawn.
    logp_G = np.bincount(group_N, np.log(np.maximum(p_N, 1e-300))) / size_G
    several_G = size_G > 1
    if several_G.sum() < FEWEST_GROUPS or agree_G[several_G].mean() < NEARLY_ALL:
        return None
    chance_G = np.exp(logp_G * (size_G - 1))[several_G]
    surprising = _surprising(agree_G[several_G].astype(float), chance_G)
    return (int(agree_G[several_G].sum()), int(several_G.sum())) if surprising else None


def _modal(group_N: Integers, ids_N: Integers) -> NDArray[np.bool_]:
    """Return (N,) whether a token is the most frequent one of its group."""
    pairs, pair_N, count_R = np.unique(np.stack([group_N, ids_N]), axis=1, return_inverse=True, return_counts=True)
    pair_N = np.asarray(pair_N).reshape(-1)
    _, group_R = np.unique(pairs[0], return_inverse=True)
    order = np.lexsort((count_R, group_R))
    best_G = order[np.flatnonzero(np.append(np.diff(group_R[order]) != 0, True))]
    is_best_R = np.zeros(len(count_R), dtype=np.bool_)
    is_best_R[best_G] = True
    return is_best_R[pair_N]


def _surprising(agrees_N: Floats, chance_N: Floats) -> bool:
    """Return whether more agree than chances say, by Bernstein's inequality at ALPHA."""
    excess = float((agrees_N - chance_N).sum())
    variance = float((chance_N * (1.0 - chance_N)).sum())
    return excess > 0 and excess**2 / (2.0 * (variance + excess / 3.0)) > -np.log(ALPHA)


CHECK = Check("forced-tokens", look)
