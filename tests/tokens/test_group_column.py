"""Which samples share a prompt, said by a column of any name."""

import json

import pytest
from table_files import rows, write_lines
from test_exports import FILES

from rlaudit.cli.app import run
from rlaudit.errors import UsageError
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.open_table import open_tables
from rlaudit.tokens.parquet import KNOWN
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.renamed_columns import AS_OURS, RenamedColumns
from rlaudit.tokens.sibling_groups import SiblingGroups
from rlaudit.tokens.token_batch import concatenate

PROMPTS, SAMPLES = 3, 4
UID = RenamedColumns({"prompt_id": "uid"})
# The table's own prompt_id is a number of the sample.
UID_OF_SAMPLES = RenamedColumns({"prompt_id": "uid", "sample_id": "prompt_id"})


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


def read(path, renamed=AS_OURS):
    (table,) = open_tables(path, renamed=renamed)
    return concatenate(table.batches(Faults(), PromptNumbers(), KNOWN))


def group_sizes(batch):
    held = SiblingGroups()
    held.add(batch)
    found = held.groups()
    return [] if found is None else sorted((found[1][:, None] == sorted(set(found[1]))).sum(axis=0).tolist())


@pytest.mark.parametrize("written", WRITERS)
def test_a_column_says_which_samples_share_a_prompt(tmp_path, written):
    path = WRITERS[written](tmp_path, lonely())
    assert group_sizes(read(path)) == []
    batch = read(path, UID_OF_SAMPLES)
    assert group_sizes(batch) == [SAMPLES] * PROMPTS
    # The number of the sample still tells the samples of a prompt apart.
    assert batch.sample_names_S.tolist() == list(range(PROMPTS * SAMPLES))


@pytest.mark.parametrize("written", WRITERS)
def test_the_column_may_be_the_prompts_id_under_another_name(tmp_path, written):
    path = WRITERS[written](tmp_path, lonely(prompt_ids=False))
    batch = read(path, UID)
    assert group_sizes(batch) == [SAMPLES] * PROMPTS
    assert set(batch.prompt_names_S) == {"question 0", "question 1", "question 2"}


def test_a_table_without_prompt_ids_is_told_of_the_option(tmp_path):
    frame = lonely(prompt_ids=False).rename(columns={"uid": "question"})
    with pytest.raises(UsageError, match="--columns COLUMN=prompt_id if it has another name"):
        open_tables(parquet(tmp_path / "t.parquet", frame))


@pytest.mark.parametrize("name", ["nemo-rl", "prime-rl"])
def test_a_prompt_that_comes_again_at_a_later_step_is_another_group(tmp_path, name):
    record = FILES[name][1]
    for step in (3, 4):
        again = {**record, "step": step, "export_step": step}
        write_lines(tmp_path / f"train_data_step{step}.jsonl", [again, again])
    assert group_sizes(read(tmp_path)) == [2, 2]


def test_the_command_line_takes_the_column(tmp_path, capsys):
    path = parquet(tmp_path / "t.parquet", lonely())
    out = tmp_path / "report.json"
    own = ["--columns", "uid=prompt_id", "--columns", "prompt_id=sample_id"]
    run(["compare", str(path), "--quiet", *own, "--output", f"json:{out}"])
    assert f"of {PROMPTS} prompts" in json.dumps(json.loads(out.read_text())["layers"])
    assert run(["compare", str(path), "--quiet", "--columns", "nothing=prompt_id"]) == 2
    assert "names 'nothing', which no table has" in capsys.readouterr().err
