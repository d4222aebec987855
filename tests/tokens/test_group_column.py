"""Which samples share a prompt, said by a column of any name."""

import json

import pytest
from table_files import as_sequences, rows, write_lines
from test_exports import ACTOR, FILES, NEMO, PRIME, TRACE

from rlaudit.cli.app import run
from rlaudit.errors import UsageError
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.open_table import all_exports, open_tables
from rlaudit.tokens.parquet import KNOWN
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.sibling_groups import SiblingGroups
from rlaudit.tokens.token_batch import concatenate

PROMPTS, SAMPLES = 3, 4


def lonely(prompt_ids=True):
    """A table whose prompt_id is a number of the sample, and whose `uid` says which of them share a prompt."""
    frame = rows(PROMPTS, SAMPLES)
    frame["uid"] = [f"question {prompt}" for prompt in frame.prompt_id]
    frame["prompt_id"] = frame.prompt_id * SAMPLES + frame.sample_id
    return frame if prompt_ids else frame.assign(sample_id=frame.prompt_id).drop(columns="prompt_id")


def parquet(path, frame):
    frame.to_parquet(path)
    return path


WRITERS = {
    "parquet": lambda path, frame: parquet(path / "t.parquet", frame),
    "parquet of lists": lambda path, frame: parquet(path / "t.parquet", lists_of(frame)),
    "jsonl": lambda path, frame: write_lines(path / "t.jsonl", frame.to_dict("records")),
    "jsonl of lists": lambda path, frame: write_lines(path / "t.jsonl", lists_of(frame).to_dict("records")),
}


def lists_of(frame):
    names = [name for name in ("prompt_id", "sample_id", "uid") if name in frame]
    return frame.groupby(names, sort=False).agg(list).reset_index()


def read(path, groups, faults=None):
    (table,) = open_tables(path, groups=groups)
    return concatenate(table.batches(faults or Faults(), PromptNumbers(), KNOWN))


def group_sizes(batch):
    held = SiblingGroups()
    held.add(batch)
    found = held.groups()
    return [] if found is None else sorted((found[1][:, None] == sorted(set(found[1]))).sum(axis=0).tolist())


@pytest.mark.parametrize("written", WRITERS)
def test_a_column_says_which_samples_share_a_prompt(tmp_path, written):
    path = WRITERS[written](tmp_path, lonely())
    assert group_sizes(read(path, "")) == []
    batch = read(path, "uid")
    assert group_sizes(batch) == [SAMPLES] * PROMPTS
    assert len(set(batch.prompt_S)) == PROMPTS
    # The name by which a trainer's table is joined stays.
    assert batch.prompt_names_S.tolist() == list(range(PROMPTS * SAMPLES))


@pytest.mark.parametrize("written", WRITERS)
def test_the_column_may_be_the_prompts_id_under_another_name(tmp_path, written):
    path = WRITERS[written](tmp_path, lonely(prompt_ids=False))
    batch = read(path, "uid")
    assert group_sizes(batch) == [SAMPLES] * PROMPTS
    assert set(batch.prompt_names_S) == {"question 0", "question 1", "question 2"}


@pytest.mark.parametrize("written", WRITERS)
def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path, written):
    path = WRITERS[written](tmp_path, lonely())
    with pytest.raises(UsageError, match="no column 'group' for --groups") as told:
        read(path, "group")
    assert "uid" in told.value.hint


@pytest.mark.parametrize("written", ["parquet", "jsonl of lists"])
def test_a_sequence_without_a_group_is_of_its_own_prompts(tmp_path, written):
    frame = lonely()
    frame.loc[frame.prompt_id == 5, "uid"] = None
    assert group_sizes(read(WRITERS[written](tmp_path, frame), "uid")) == [3, 4, 4]


def test_a_group_that_is_no_name_is_a_fault_of_its_line(tmp_path):
    records = list(as_sequences(rows(uid="one")))
    for record in records:
        record["uid"] = "one"
    records[1]["uid"] = ["one"]
    faults = Faults()
    assert read(write_lines(tmp_path / "t.jsonl", records), "uid", faults).sequences == len(records) - 1
    assert "its group is a list" in faults.lines()[0]


def test_a_table_without_prompt_ids_is_told_of_the_option(tmp_path):
    with pytest.raises(UsageError, match="--groups COLUMN where prompt_id has another name"):
        open_tables(parquet(tmp_path / "t.parquet", lonely(prompt_ids=False)))


DUMPS = {
    "nemo-rl": ({**NEMO, "uid": "a"}, {**NEMO, "uid": "b"}),
    "prime-rl": ({**PRIME, "uid": "a"}, {**PRIME, "uid": "b"}),
    "open-instruct": ({**TRACE, "uid": "a"}, {**TRACE, "uid": "b"}),
    "pipelinerl-actor": ([{**ACTOR[0], "uid": "a"}], [{**ACTOR[0], "uid": "b"}]),
}


@pytest.mark.parametrize("name", DUMPS)
def test_dumps_of_frameworks_may_say_it_by_another_column_too(tmp_path, name):
    one, other = DUMPS[name]
    path = write_lines(tmp_path / "f.jsonl", [one, one, other])
    assert group_sizes(read(path, "")) == [3]
    assert group_sizes(read(path, "uid")) == [2]


@pytest.mark.parametrize("name", DUMPS)
def test_a_dump_without_that_column_says_what_tells_its_groups(tmp_path, name):
    path = write_lines(tmp_path / "f.jsonl", [FILES[name][1]])
    with pytest.raises(UsageError) as told:
        read(path, "uid")
    assert all_exports()[name].groups in told.value.hint


@pytest.mark.parametrize("name", ["nemo-rl", "prime-rl"])
def test_a_prompt_that_comes_again_at_a_later_step_is_another_group(tmp_path, name):
    record = FILES[name][1]
    for step in (3, 4):
        again = {**record, "step": step, "export_step": step}
        write_lines(tmp_path / f"train_data_step{step}.jsonl", [again, again])
    assert group_sizes(read(tmp_path, "")) == [2, 2]


def test_the_command_line_takes_the_column(tmp_path, capsys):
    path = parquet(tmp_path / "t.parquet", lonely())
    out = tmp_path / "report.json"
    run(["compare", str(path), "--quiet", "--groups", "uid", "--output", f"json:{out}"])
    assert f"of {PROMPTS} prompts" in json.dumps(json.loads(out.read_text())["layers"])
    assert run(["compare", str(path), "--quiet", "--groups", "nothing"]) == 2
    assert "there are: prompt_id" in capsys.readouterr().err
