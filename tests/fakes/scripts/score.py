"""Scores sampled tokens with the known model, by numpy instead of torch: the scoring job's own format in and out.

Written for clearness, not speed, and from the job's definition rather than from the shipped script.
"""

import known_model
import numpy as np


def run(job, channel):
    """Write scores.npz; returns what the shipped script returns, as far as a report reads it."""
    channel.phase("score")
    rows, own, counts, in_prompt = _flat(job)
    exact = np.array([known_model.logits_after(last, job["head_dtype"]) for last in range(known_model.VOCABULARY)])
    logits_TV = exact[rows]
    trainer_TV = _log_softmax(logits_TV / job["temperature"])
    place = np.arange(len(own))
    own_T = trainer_TV[place, own]
    above_TV = trainer_TV > own_T[:, None]
    mass_TV = np.exp(trainer_TV)
    order = np.argsort(-trainer_TV, axis=1, kind="stable")
    top = order[:, : job["top_logprobs"]]
    masses = mass_TV[:, :, None]
    rank_each = np.argsort(order, axis=1)
    through = np.take_along_axis(mass_TV, order, axis=1).cumsum(1)
    above_each = np.maximum(0.0, np.take_along_axis(through, rank_each, axis=1) - mass_TV)[:, :, None]
    arrays = {
        "offsets": np.cumsum([0] + [len(sequence["token_ids"]) for sequence in job["sequences"]]),
        "trainer_logprobs": own_T,
        "entropy": -(mass_TV * trainer_TV).sum(1),
        "rank": above_TV.sum(1) + 1,
        "mass_above": (mass_TV * above_TV).sum(1),
        "max_probability": mass_TV.max(1),
        "candidate_logprobs": np.stack(
            [_candidate(wanted, logits_TV, counts, in_prompt)[place, own] for wanted in job["candidates"]], axis=1
        ),
        "nucleus_mass": (masses * (above_each <= np.array(job["nucleus_grid"]))).sum(1),
        "top_k_mass": (masses * (rank_each[:, :, None] < np.array(job["top_k_grid"]))).sum(1),
        "min_p_mass": (masses * (masses >= np.array(job["min_p_grid"]) * masses.max(1, keepdims=True))).sum(1),
        "top_ids": top,
        "top_logprobs": np.take_along_axis(trainer_TV, top, axis=1),
    }
    single = {name: values.astype(np.float32) for name, values in arrays.items() if values.dtype == np.float64}
    np.savez(channel.path("scores.npz"), **{**arrays, **single})
    floor = dict.fromkeys(("mean_abs", "median_abs", "max_abs", "k3"), 0.0)
    return {
        "tokens": len(own),
        "sequences": len(job["sequences"]),
        "tokens_per_second": 1.0,
        "micro_batch_floor": {"sequences": job["floor_sequences"], "tokens": len(own), **floor},
        "resolved": {"dtype": job["dtype"], "head_dtype": job["head_dtype"]},
    }


def _flat(job):
    """Per sampled token: the one before it, itself, counts of earlier outputs (T, V), what the prompt holds (T, V)."""
    rows, own, counts, in_prompt = [], [], [], []
    for sequence in job["sequences"]:
        prompt, sampled = sequence["prompt_token_ids"], sequence["token_ids"]
        rows += [prompt[-1], *sampled[:-1]]
        own += sampled
        before = np.eye(known_model.VOCABULARY)[sampled].cumsum(0) - np.eye(known_model.VOCABULARY)[sampled]
        counts.append(before)
        held = np.isin(np.arange(known_model.VOCABULARY), prompt)
        in_prompt.append(np.repeat(held[None], len(sampled), axis=0))
    return np.array(rows), np.array(own), np.concatenate(counts), np.concatenate(in_prompt)


def _candidate(wanted, logits_TV, counts, in_prompt):
    """(T, V) logprobs under one meaning, in vLLM's order: penalties, temperature, min_p, top-k, top-p."""
    seen = in_prompt | (counts > 0)
    repetition = wanted["repetition_penalty"]
    repeated = np.where(logits_TV > 0, logits_TV / repetition, logits_TV * repetition)
    logits = np.where(seen, repeated, logits_TV)
    logits = logits - wanted["frequency_penalty"] * counts - wanted["presence_penalty"] * (counts > 0)
    logits = logits / wanted["temperature"]
    if wanted["min_p"] > 0:
        logits = np.where(logits >= logits.max(1, keepdims=True) + np.log(wanted["min_p"]), logits, -np.inf)
    ordered = -np.sort(-logits, axis=1)
    if 0 < wanted["top_k"] <= logits.shape[1]:
        logits = np.where(logits >= ordered[:, wanted["top_k"] - 1 :][:, :1], logits, -np.inf)
    if wanted["top_p"] < 1:
        mass = np.exp(_log_softmax(-np.sort(-logits, axis=1)))
        kept = np.maximum(1, (mass.cumsum(1) - mass < wanted["top_p"]).sum(1))
        cut = np.take_along_axis(-np.sort(-logits, axis=1), kept[:, None] - 1, axis=1)
        logits = np.where(logits >= cut, logits, -np.inf)
    return _log_softmax(logits)


def _log_softmax(logits):
    shifted = logits - logits.max(1, keepdims=True)
    with np.errstate(divide="ignore"):
        return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
