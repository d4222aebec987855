"""Logs of conversations with a tool, whose history is passed on as it was or changed in one known way.

Written with arithmetic of its own: the turns that change are counted while they are made.
"""

import json
from dataclasses import dataclass, field

import numpy as np

END, BREAK, USER, ASSISTANT, THINK, THOUGHT = 1, 2, 3, 4, 5, 6
WORDS = (100, 3000)
# Nats of error of the logits: of rounding, and behind another context.
ROUNDING, ANOTHER_CONTEXT = 0.01, 0.4
VOCABULARY = 40


@dataclass
class Made:
    """The records of a log, one a turn, and how many later turns begin with other tokens than were sampled."""

    records: list[dict] = field(default_factory=list)
    changed: int = 0
    later: int = 0
    # Tokens that were sampled after a change, and all.
    after: int = 0
    tokens: int = 0


def _tail(tool):
    return [BREAK, USER, BREAK, *tool, END, BREAK, ASSISTANT, BREAK]


CHANGES = {
    "encoded again": lambda sent, think, body, tool, words: [*sent, *think, *body[:3], *words(2), *body[4:], END],
    "reasoning left out": lambda sent, think, body, tool, words: [*sent, *body, END],
    "end token lost": lambda sent, think, body, tool, words: [*sent, *think, *body],
    "end token doubled": lambda sent, think, body, tool, words: [*sent, *think, *body, END, END],
    "answer cut": lambda sent, think, body, tool, words: [*sent, *think, *body[:-6], END],
    "system prompt changed": lambda sent, think, body, tool, words: [
        *sent[:5], *words(2), *sent[7:], *think, *body, END,
    ],
}  # fmt: skip


def conversations(change="encoded again", dose=0.3, conversations=40, turns=8, samples=1, trainer="whole", seed=0):
    """Return the log of an agent that uses a tool at each turn.

    change: of CHANGES, made before a share `dose` of the later turns. samples: conversations that begin with one
    prompt. trainer: "whole" scores a conversation as it was sampled, so the engine saw another context after a change;
    "as sent" scores each turn behind the prompt that was sent.
    """
    rng, made = np.random.default_rng(seed), Made()

    def words(count):
        return rng.integers(*WORDS, count).tolist()

    system = words(40)
    for number in range(conversations):
        first = [*system, END, BREAK, USER, BREAK, *words(20), END, BREAK, ASSISTANT, BREAK]
        for sample in range(samples):
            sent, after = first, False
            for turn in range(turns):
                think = [THINK, *words(20), THOUGHT] if change == "reasoning left out" else []
                body = words(int(rng.integers(8, 40)))
                answer = [*think, *body, END]
                noise = ANOTHER_CONTEXT if after and trainer == "whole" else ROUNDING
                made.after, made.tokens = made.after + after * len(answer), made.tokens + len(answer)
                made.records.append(_record(f"{number}.{turn}", sample, sent, answer, noise, rng))
                if turn + 1 == turns:
                    break
                made.later += 1
                tool = words(12)
                if rng.random() < dose:
                    made.changed, after = made.changed + 1, True
                    sent = [*CHANGES[change](sent, think, body, tool, words), *_tail(tool)]
                else:
                    sent = [*sent, *answer, *_tail(tool)]
    return made


def _record(prompt, sample, sent, answer, noise, rng):
    logits = rng.normal(0, 2.5, (len(answer), VOCABULARY))
    engine = logits + noise * rng.normal(size=logits.shape)
    rollout, trainer = (values - np.log(np.exp(values).sum(axis=1, keepdims=True)) for values in (engine, logits))
    drawn = (np.exp(rollout).cumsum(axis=1) > rng.random((len(answer), 1))).argmax(axis=1)
    rows = np.arange(len(answer))
    return {
        "prompt_id": prompt,
        "sample_id": sample,
        "prompt_token_ids": sent,
        "token_id": answer,
        "rollout_logprob": rollout[rows, drawn].tolist(),
        "trainer_logprob": trainer[rows, drawn].tolist(),
    }


def written(path, made, seed=0):
    """Write the records to a JSON lines file, in any order, and return its path."""
    records = [made.records[place] for place in np.random.default_rng(seed).permutation(len(made.records))]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path
