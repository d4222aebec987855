"""Tokens that are drawn one by one, in contexts that samples of one prompt share, with forced words or an end."""

from dataclasses import replace

import numpy as np
from token_tables import table


def drawn(seed=0, prompts=24, samples=4, length=12, forced=(), vocabulary=40, ends=0.0, power=1.0, entropies=False):
    """Return draws from distributions that only the tokens so far decide, and that are reported.

    forced: ids that stand first in all completions, or functions of the prompt's number. ends: chance of an end, which
    is id 0. power: of the probabilities that tokens are drawn by, unlike those that are reported.
    """
    rng = np.random.default_rng(seed)
    ids, logprobs, entropy_T, lengths = [], [], [], []
    for prompt in range(prompts):
        for _ in range(samples):
            context, count = (prompt,), 0
            while count < length:
                world = np.random.default_rng((seed, *context))
                p = world.dirichlet(np.full(vocabulary, 0.15))
                # No completion is an end and nothing else.
                p[0] = 0.0
                p *= (1 - ends * (count > 0)) / p.sum()
                p[0] = ends * (count > 0)
                token = int(rng.choice(vocabulary, p=p**power / (p**power).sum()))
                if count < len(forced):
                    token = forced[count](prompt) if callable(forced[count]) else forced[count]
                    p[token] = max(p[token], 1e-3)
                ids.append(token)
                logprobs.append(np.log(p[token]))
                entropy_T.append(-(p * np.log(np.maximum(p, 1e-300))).sum())
                context, count = (*context, token), count + 1
                if token == 0:
                    break
            lengths.append(count)
    sequences = prompts * samples
    honest = table(prompts=prompts, samples=samples, length=1)
    sequence_T = np.repeat(np.arange(sequences), lengths)
    return replace(
        honest,
        rollout_logprobs_T=np.array(logprobs),
        trainer_logprobs_T=np.array(logprobs) + 1e-5 * rng.standard_normal(len(ids)),
        token_id_T=np.array(ids),
        position_T=np.concatenate([np.arange(length) for length in lengths]),
        sequence_T=sequence_T,
        token_columns={"trainer_entropy": np.array(entropy_T)} if entropies else {},
    )


def without_ends(batch):
    """Return the same without the ends of sequence."""
    kept_T = batch.token_id_T != 0
    return batch._of(kept_T, slice(None), batch.sequence_T[kept_T])
