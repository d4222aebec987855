"""Two tables of the same sequences: paired by a key that is proven, or refused; nothing is lost without a word."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from table_files import write_lines

from rlaudit.errors import NotFinished
from rlaudit.tokens import join_trainer
from rlaudit.tokens.fault import FaultKind, Faults
from rlaudit.tokens.join_trainer import joined
from rlaudit.tokens.logged_sequence import batches_of, sequence_of_record
from rlaudit.tokens.open_table import open_tables
from rlaudit.tokens.parquet import KNOWN
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.token_batch import concatenate

PATHS = (Path("rollouts.jsonl"), Path("trainer.jsonl"))


def batches(records, tokens=20):
    """As a file of these records is read, in small batches."""
    faults = Faults()
    sequences = [sequence_of_record(one, PATHS[0], line, faults) for line, one in enumerate(records, start=1)]
    assert not faults.count
    return batches_of(sequences, PromptNumbers(), tokens)


def both_sides(count, draw, length=4, keys=("prompt_id", "sample_id")):
    """`count` sequences whose two logprobs are their own number, with ids that come again."""
    rollouts, trainer = [], []
    for number in range(count):
        names = {"prompt_id": draw.randrange(count // 4 + 1), "sample_id": draw.randrange(2)}
        ids = {"token_id": [draw.randrange(9) for _ in range(length)], "step": number % 3}
        own = names | {name: ids[name] for name in ids if name in keys}
        rollouts.append({**own, "rollout_logprob": [-float(number)] * length})
        trainer.append({**own, "trainer_logprob": [-float(number) - 0.5] * length})
    draw.shuffle(trainer)
    return rollouts, trainer


@pytest.mark.parametrize("seed", range(60))
def test_every_sequence_meets_its_own_partner_or_is_counted_or_the_join_is_refused(seed):
    draw = random.Random(seed)
    keys = draw.choice((("token_id",), ("step",), ("token_id", "step"), ()))
    rollouts, trainer = both_sides(draw.choice((3, 20, 60)), draw, draw.choice((1, 4, 12)), keys)
    kept = draw.sample(trainer, draw.randrange(1, len(trainer) + 1))
    names = [tuple(str(one.get(name)) for name in ("prompt_id", "sample_id", *keys)) for one in rollouts]
    faults = Faults()
    pairs = joined(batches(rollouts), batches(kept), PATHS, faults)
    if len(set(names)) < len(names):
        with pytest.raises(NotFinished, match="of an earlier one"):
            list(pairs)
        return
    paired = 0
    for part in pairs:
        np.testing.assert_array_equal(part.trainer_logprobs_T, part.rollout_logprobs_T - 0.5)
        paired += part.sequences
    assert paired == len(kept)
    assert paired + faults.sequences_left_out == len(rollouts)


def test_ids_that_come_again_in_two_steps_are_refused_with_the_column_that_is_missing():
    step = [{"prompt_id": n, "sample_id": 0, "rollout_logprob": [-1.0, -2.0]} for n in range(4)]
    with pytest.raises(NotFinished) as refused:
        list(joined(batches([*step, *step]), batches(step), PATHS, Faults()))
    assert "rollouts.jsonl: 4 of 8 sequences have the prompt_id, sample_id and length of an earlier one" in str(
        refused.value
    )
    assert "first prompt 0, sample 0, line 5" in str(refused.value)
    assert "step or token_id" in str(refused.value)


def test_ids_that_come_again_in_the_trainers_table_are_refused_as_well():
    step = [{"prompt_id": n, "sample_id": 0, "rollout_logprob": [-1.0, -2.0]} for n in range(4)]
    with pytest.raises(NotFinished, match=r"trainer\.jsonl: 1 of 5 sequences"):
        list(joined(batches(step), batches([*step, step[2]]), PATHS, Faults()))


def test_sequences_of_other_tokens_are_never_paired_however_they_are_called():
    mine = [{"prompt_id": 0, "sample_id": n, "token_id": [n, 1], "rollout_logprob": [-1.0, -1.0]} for n in range(3)]
    other = [{**one, "token_id": [one["token_id"][0] + 7, 1]} for one in mine]
    faults = Faults()
    assert not list(joined(batches(mine), batches(other), PATHS, faults))
    (met,) = faults.met.values()
    assert (met.first.kind, met.count, met.tokens) == (FaultKind.OTHER_TOKENS, 3, 6)


def test_a_sequence_that_the_trainer_did_not_score_does_not_get_the_rollouts_own_logprobs():
    mine = [{"prompt_id": n, "sample_id": 0, "rollout_logprob": [-1.0]} for n in range(3)]
    other = [{**one, "trainer_logprob": [-2.0]} for one in mine]
    del other[1]["trainer_logprob"]
    (part,) = joined(batches(mine), batches(other), PATHS, Faults())
    np.testing.assert_array_equal(part.trainer_logprobs_T, [-2.0, np.nan, -2.0])


def test_a_table_that_names_its_logprobs_now_so_and_now_so_is_refused():
    mine = [{"prompt_id": n, "sample_id": 0, "rollout_logprob": [-1.0] * 30} for n in range(3)]
    other = [*mine[:2], {**mine[2], "trainer_logprob": [-2.0] * 30}]
    with pytest.raises(NotFinished, match="the first ones have only a rollout_logprob"):
        list(joined(batches(mine), batches(other), PATHS, Faults()))


def test_tables_that_hold_other_sequences_end_before_they_fill_the_memory(monkeypatch):
    monkeypatch.setattr(join_trainer, "MOST_WAITING_TOKENS", 100)
    mine = [{"prompt_id": n, "sample_id": 0, "rollout_logprob": [-1.0] * 10} for n in range(40)]
    other = [{**one, "sample_id": 1} for one in mine]
    with pytest.raises(NotFinished, match="wait for a counterpart, first prompt 0, sample 0, line 1"):
        list(joined(batches(mine), batches(other), PATHS, Faults()))
    assert len(list(joined(batches(mine), batches(mine), PATHS, Faults()))) == 20


def test_a_name_of_several_steps_is_counted_as_often_as_it_is_left_over():
    """Of two with the name of one rollout, one is of other tokens and one has no rollout."""
    named = {"prompt_id": 0, "sample_id": 0}
    mine = [{**named, "step": 3, "rollout_logprob": [-1.0]}]
    other = [{**named, "step": step, "trainer_logprob": [-1.0]} for step in (1, 2)]
    faults = Faults()
    assert not list(joined(batches(mine), batches(other), PATHS, faults))
    counts = {met.first.kind: met.count for met in faults.met.values()}
    assert counts == {FaultKind.OTHER_TOKENS: 1, FaultKind.NO_ROLLOUT: 1}


def test_a_join_that_is_refused_holds_nothing_of_either_table(monkeypatch):
    held = []
    forget = join_trainer._Side.forget
    monkeypatch.setattr(join_trainer._Side, "forget", lambda side: (forget(side), held.append(side.tokens)))
    step = [{"prompt_id": n, "sample_id": 0, "rollout_logprob": [-1.0] * 10} for n in range(40)]
    with pytest.raises(NotFinished, match="of an earlier one"):
        list(joined(batches([step[0], *step]), batches(step), PATHS, Faults()))
    assert len(held) > 20 and set(held) == {0}


def test_what_waits_for_long_keeps_no_batch_of_its_neighbours():
    mine = [{"prompt_id": n, "sample_id": 0, "rollout_logprob": [-1.0] * 10} for n in range(400)]
    late = [*mine[1:], mine[0]]
    side = join_trainer._Side(PATHS[0])
    key = join_trainer._Key((), False)
    (whole,) = batches(mine, tokens=4000)
    keys = side.add(whole, key)
    side.take(keys[1:])
    assert side.tokens == 10
    assert sum(part.sequences for part in joined(batches(mine), batches(late), PATHS, Faults())) == 400


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("by_token", [False, True])
def test_a_trainers_own_table_has_its_logprobs_in_trainer_logprob(tmp_path, ending, by_token):
    import pandas as pd

    records = [{"prompt_id": n, "sample_id": 0, "trainer_logprob": [-1.0, -2.0]} for n in range(3)]
    if by_token:
        records = [{**one, "trainer_logprob": value} for one in records for value in one["trainer_logprob"]]
    path = tmp_path / f"trainer.{ending}"
    if ending == "jsonl":
        write_lines(path, records)
    else:
        pd.DataFrame(records).to_parquet(path)
    (table,) = open_tables(path, of_trainer=True)
    batch = concatenate(table.batches(Faults(), PromptNumbers(), KNOWN))
    assert batch.trainer_logprobs_T.tolist() == [-1.0, -2.0] * 3
    assert np.isnan(batch.rollout_logprobs_T).all()


def test_steps_may_be_called_by_a_text(tmp_path):
    record = {"prompt_id": 0, "sample_id": 0, "rollout_logprob": [-1.0]}
    mine = [{**record, "step": f"global_step_{n}", "rollout_logprob": [-float(n)]} for n in (1, 2)]
    found = list(joined(batches(mine), batches(mine[::-1]), PATHS, Faults()))
    assert [part.trainer_logprobs_T.tolist() for part in found] == [[-1.0, -2.0]]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({**one, "rollout_logprob": one["rollout_logprob"][0]}) + "\n" for one in mine))
    (table,) = open_tables(path)
    (batch,) = table.batches(Faults(), PromptNumbers(), KNOWN)
    assert batch.sequences == 2
