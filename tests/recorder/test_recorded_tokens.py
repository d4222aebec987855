import re

import numpy as np
import pytest
from recorded_worlds import World
from written_recording import WrittenProcess, name_of_prompt

from rlaudit.tokens.fault import Faults
from rlaudit.tokens.open_table import open_tables
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.token_batch import concatenate

SMALL = World(prompts=2, samples=2, tokens=6, noise=0.0)
PROMPT = [5, 6, 7]


def table_of(folder):
    (table,) = open_tables(folder)
    return table


def read(folder, faults=None):
    return concatenate(table_of(folder).batches(faults or Faults(), PromptNumbers()))


def one_sequence(tmp_path, ids=(8, 9, 10), **fields):
    """A process with one whole sequence, which the trainer has not scored yet."""
    process = WrittenProcess(tmp_path)
    process.sampling(0, temperature=0.7)
    request = process.request(PROMPT)
    first = process.steps
    for _ in ids:
        process.step(1)
    process.sequence(request, PROMPT, list(ids), [-1.0] * len(ids), [[first, len(ids), 1]], **fields)
    return process


def more(process, prompt, ids, **fields):
    request = process.request(prompt)
    process.sequence(request, prompt, list(ids), [-1.0] * len(ids), [[process.step(len(ids)), 1, len(ids)]])
    process.lines[-1].update(fields)


def test_a_recording_is_a_table_with_both_sides(tmp_path):
    batch = read(SMALL.write(tmp_path))
    assert np.allclose(batch.trainer_logprobs_T, batch.rollout_logprobs_T, atol=1e-5)
    assert set(batch.prompt_names_S) == {name_of_prompt([100 + v, n, 7]) for v in range(3) for n in range(2)}
    assert list(batch.prompt_token_ids_S[0]) == [100, 0, 7]


def test_tokens_have_the_version_of_the_weights_that_sampled_them(tmp_path):
    batch = read(SMALL.write(tmp_path))
    assert sorted(set(batch.token_columns["rollout_version"])) == [0, 1, 2]
    assert np.array_equal(batch.token_columns["rollout_version"], batch.token_columns["trainer_version"])
    assert np.array_equal(batch.sequence_columns["step"], [v for v in range(3) for _ in range(4)])


def test_a_trainer_that_scores_after_the_update_is_a_version_ahead(tmp_path):
    batch = read(World(prompts=2, samples=2, tokens=6, late=True).write(tmp_path))
    lag_T = batch.token_columns["trainer_version"] - batch.token_columns["rollout_version"]
    assert set(lag_T) == {1}


def test_an_update_between_two_tokens_parts_a_sequence(tmp_path):
    process = WrittenProcess(tmp_path)
    process.sampling(0)
    request = process.request(PROMPT)
    process.step(1)
    process.step(1)
    process.load()
    process.step(1)
    process.sequence(request, PROMPT, [1, 2, 3], [-1.0] * 3, [[0, 3, 1]])
    assert list(read(process.write()).token_columns["rollout_version"]) == [0, 0, 1]


def test_sampling_parameters_come_from_the_recording(tmp_path):
    (part,) = (table_of(SMALL.write(tmp_path, top_k=-1, top_p=0.9)).part,)
    assert part.sampling["temperature"] == 0.7
    assert (part.sampling["top_k"], part.sampling["top_p"]) == (0, 0.9)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"finish": "abort"}, "1 recorded sequences were aborted"),
        ({"finish": None}, "had not finished when the recording ended"),
        ({"resumed": True}, "were resumed with other tokens"),
        ({"logprobs": None}, "have no logprob that is a number"),
        ({"visible": 0}, "have no token that the caller saw"),
        ({"request": "99"}, "have no request or prompt that can be read"),
    ],
)
def test_a_sequence_that_is_not_whole_is_left_out_and_counted(tmp_path, fields, said):
    process = one_sequence(tmp_path)
    more(process, PROMPT, (11, 12), **fields)
    folder = process.write()
    assert read(folder).sequences == 1
    assert any(said in one for one in table_of(folder).part.not_seen)


def test_a_trainers_function_that_brought_no_row_is_named(tmp_path):
    process = one_sequence(tmp_path)
    assert not any("loss:logps" in one for one in table_of(process.write()).part.not_seen)
    process.put(kind="hooks", hooked=["worker.sleep", "loss:logps"])
    assert any(
        one.startswith("loss:logps is recorded, but gave no logprobs")
        for one in table_of(process.write()).part.not_seen
    )


def test_a_prompt_with_images_is_left_out(tmp_path):
    process = one_sequence(tmp_path)
    request = process.request([1], parts="images or sound")
    process.sequence(request, [1], [2], [-1.0], [[process.step(1), 1, 1]])
    folder = process.write()
    assert read(folder).sequences == 1
    assert any("more than text" in one for one in table_of(folder).part.not_seen)


def test_tokens_that_the_caller_did_not_see_are_cut_off(tmp_path):
    batch = read(one_sequence(tmp_path, visible=2).write())
    assert list(batch.token_id_T) == [8, 9]


@pytest.mark.parametrize("steps", [[[0, 4, 1]], [[0, 1 << 60, 3]], []])
def test_steps_of_other_tokens_are_a_fault_and_no_memory(tmp_path, steps):
    process = one_sequence(tmp_path)
    more(process, PROMPT, (11, 12))
    next(line for line in process.lines if line["kind"] == "sequence")["steps"] = steps
    faults = Faults()
    assert read(process.write(), faults).sequences == 1
    assert faults.count == 1


def test_parameters_of_another_distribution_are_left_out_by_name(tmp_path):
    process = one_sequence(tmp_path)
    process.sampling(1, temperature=0.0)
    process.sampling(2, temperature=0.7, max_tokens=5, seed=3, stop=["x"])
    for number, length in ((1, 40), (2, 3)):
        request = process.request([number], sampling=number)
        process.sequence(request, [number], list(range(length)), [-1.0] * length, [[process.step(length), 1, length]])
    folder = process.write()
    assert read(folder).sequences == 2
    assert any("1 sequences (40 tokens) were sampled with temperature=0.0" in x for x in table_of(folder).part.not_seen)


def test_the_old_policy_is_compared_and_the_reference_kept_apart(tmp_path):
    process = one_sequence(tmp_path)
    frozen = {"number": 2, "class": "Llama", "dtype": "torch.float32", "trainable": False, "adapters": None}
    rows = [[8, 9, 10, 0]]
    process.trainer(rows, [[-2, -2, -2, 0]], gradients=False)
    process.trainer(rows, [[-3, -3, -3, 0]], gradients=False, model=frozen)
    process.trainer(rows, [[-4, -4, -4, 0]], gradients=True)
    process.trainer(rows, [[-9, -9, -9, 0]], gradients=True)
    batch = read(process.write())
    assert list(batch.trainer_logprobs_T) == [-2] * 3
    assert list(batch.token_columns["base_logprob"]) == [-3] * 3


def test_without_an_old_policy_in_time_the_first_use_is_compared(tmp_path):
    process = one_sequence(tmp_path)
    process.trainer([[8, 9, 10]], [[-4, -4, -4]], gradients=True)
    process.load()
    process.trainer([[8, 9, 10]], [[-2, -2, -2]], gradients=False)
    process.trainer([[8, 9, 10]], [[-5, -5, -5]], gradients=True)
    batch = read(process.write())
    assert list(batch.trainer_logprobs_T) == [-4] * 3
    assert list(batch.token_columns["trainer_version"]) == [0] * 3


def test_adapters_that_are_off_make_a_reference(tmp_path):
    process = one_sequence(tmp_path)
    on = {"number": 1, "class": "PeftModel", "dtype": "torch.float32", "trainable": True, "adapters": True}
    process.trainer([[8, 9, 10]], [[-3, -3, -3]], gradients=False, model={**on, "adapters": False})
    process.trainer([[8, 9, 10]], [[-4, -4, -4]], gradients=True, model=on)
    batch = read(process.write())
    assert list(batch.trainer_logprobs_T) == [-4] * 3
    assert list(batch.token_columns["base_logprob"]) == [-3] * 3


def test_a_call_that_nothing_decides_is_counted_as_undecided(tmp_path):
    process = one_sequence(tmp_path)
    process.trainer([[8, 9, 10]], [[-3, -3, -3]], gradients=False, model=None)
    process.trainer([[8, 9, 10]], [[-4, -4, -4]], gradients=True)
    folder = process.write()
    assert list(read(folder).trainer_logprobs_T) == [-4] * 3
    assert any(
        "1 of 2 sequences" in one and "neither known to be trained" in one for one in table_of(folder).part.not_seen
    )


def test_rows_of_other_data_and_of_the_backward_pass_are_counted(tmp_path):
    process = one_sequence(tmp_path)
    process.trainer([[8, 9, 11], [8, 9, 10]], [[-3] * 3, [-4] * 3], gradients=True)
    process.trainer([[8, 9, 10]], [[-5] * 3], gradients=True, backward=True)
    folder = process.write()
    assert list(read(folder).trainer_logprobs_T) == [-4] * 3
    said = " ".join(table_of(folder).part.not_seen)
    assert "1 of 3 sequences that the trainer scored match no recorded sequence" in said
    assert "1 of 3 sequences that the trainer scored were recomputed" in said


def test_a_completion_of_several_prompts_is_ambiguous(tmp_path):
    process = one_sequence(tmp_path)
    more(process, [1, 2], (8, 9, 10))
    more(process, [1, 2], (8, 9, 10, 11))
    process.trainer([[8, 9, 10, 0], [8, 9, 10, 11]], [[-3] * 4, [-4] * 4], gradients=True)
    folder = process.write()
    faults = Faults()
    assert list(read(folder, faults).trainer_logprobs_T) == [-4] * 4
    assert not faults.count
    said = table_of(folder).part.not_seen
    assert any("match completions of several prompts" in one for one in said)
    assert any("2 sequences have the tokens of another prompt's" in one for one in said)


def ends_at_once(tmp_path, order, gradients):
    """Four prompts of which two end at once, scored in some order: row r has the logprobs of -r - 1."""
    completions = [(2,), (8, 9), (2,), (8, 10)]
    process = WrittenProcess(tmp_path)
    process.sampling(0)
    for prompt, ids in enumerate(completions):
        more(process, [prompt], ids)
    rows = [[*completions[number], 0][:2] for number in order]
    process.trainer(rows, [[-number - 1.0] * 2 for number in order], gradients=gradients)
    process.trainer(rows, [[-number - 1.0] * 2 for number in order], gradients=True)
    return process.write()


def test_rows_in_the_order_of_the_requests_tell_equal_completions_apart(tmp_path):
    batch = read(ends_at_once(tmp_path, [0, 1, 2, 3], gradients=False))
    assert list(batch.trainer_logprobs_T) == [-1, -2, -2, -3, -4, -4]


@pytest.mark.parametrize(("order", "gradients"), [([3, 2, 1, 0], False), ([0, 1, 2, 3], True)])
def test_rows_in_another_order_or_of_a_shuffled_call_do_not(tmp_path, order, gradients):
    batch = read(ends_at_once(tmp_path, order, gradients))
    assert list(batch.trainer_logprobs_T) == [-2, -2, -4, -4]


def test_the_longest_completion_that_begins_a_row_is_meant(tmp_path):
    process = one_sequence(tmp_path)
    more(process, PROMPT, (8, 9))
    process.trainer([[8, 9, 10, 0], [8, 9, 0, 0]], [[-3] * 4, [-4] * 4], gradients=True)
    assert list(read(process.write()).trainer_logprobs_T) == [-3, -3, -3, -4, -4]


def test_equal_completions_of_one_prompt_have_a_row_each(tmp_path):
    process = one_sequence(tmp_path)
    more(process, PROMPT, (8, 9, 10))
    process.trainer([[8, 9, 10], [8, 9, 10]], [[-3] * 3, [-4] * 3], gradients=True)
    assert sorted(read(process.write()).trainer_logprobs_T) == [-4] * 3 + [-3] * 3


def test_a_later_epoch_has_rows_of_its_own(tmp_path):
    process = one_sequence(tmp_path)
    process.trainer([[8, 9, 10]], [[-3] * 3], gradients=True)
    process.load()
    more(process, PROMPT, (8, 9, 10))
    process.trainer([[8, 9, 10]], [[-4] * 3], gradients=True)
    process.trainer([[8, 9, 10]], [[-5] * 3], gradients=True)
    assert list(read(process.write()).trainer_logprobs_T) == [-3] * 3 + [-4] * 3


def test_what_finished_after_the_trainers_last_call_is_left_out(tmp_path):
    process = one_sequence(tmp_path)
    process.trainer([[8, 9, 10]], [[-3] * 3], gradients=True)
    more(process, [1], (3, 4))
    folder = process.write()
    assert read(folder).sequences == 1
    assert any(
        "1 sequences finished after the trainer's last recorded call" in x for x in table_of(folder).part.not_seen
    )


def test_only_what_was_sampled_from_the_first_weights_is_scored(tmp_path):
    table = table_of(SMALL.write(tmp_path))
    (batch,) = table.batches(Faults(), PromptNumbers())
    assert set(table.export.scorable(table.path, batch).token_columns["rollout_version"]) == {0}


def test_weights_that_were_loaded_before_any_token_are_the_first(tmp_path):
    process = WrittenProcess(tmp_path)
    process.sampling(0)
    process.load()
    more(process, PROMPT, (8, 9))
    process.load()
    more(process, PROMPT, (8, 9))
    table = table_of(process.write())
    (batch,) = table.batches(Faults(), PromptNumbers())
    assert set(table.export.scorable(table.path, batch).token_columns["rollout_version"]) == {1}


def test_requests_with_names_of_their_own_have_no_order(tmp_path):
    folder = ends_at_once(tmp_path, [0, 1, 2, 3], gradients=False)
    file = next(folder.glob("*.jsonl"))
    file.write_text(re.sub(r'"request":"(\d)"', r'"request":"chat\1"', file.read_text()))
    assert list(read(folder).trainer_logprobs_T) == [-2, -2, -4, -4]


def test_the_order_of_the_lines_is_not_that_of_the_requests(tmp_path):
    folder = ends_at_once(tmp_path, [0, 1, 2, 3], gradients=False)
    file = next(folder.glob("*.jsonl"))
    lines = file.read_text().splitlines(keepends=True)
    asked = [place for place, line in enumerate(lines) if '"kind":"request"' in line]
    lines.insert(asked[0], lines.pop(asked[2]))
    file.write_text("".join(lines))
    assert list(read(folder).trainer_logprobs_T) == [-1, -2, -2, -3, -4, -4]
