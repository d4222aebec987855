"""The tokens of a recording as a table, with what the trainer made of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from recorded_worlds import World
from written_recording import WrittenProcess, name_of_prompt

from rlaudit.tokens.fault import Faults
from rlaudit.tokens.open_table import TokenTable, open_tables
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.token_batch import TokenBatch, concatenate

SMALL = World(prompts=2, samples=2, tokens=6, noise=0.0)
COMPLETION = [8, 9, 10]
ENDING_AT_ONCE = [[2], [8, 9], [2], [8, 10]]


class Trained(WrittenProcess):
    """A process with the words of recorded_tokens.yaml."""

    def one(self) -> None:
        self.sampled([5, 6, 7], COMPLETION, a_step=1)

    def more(self, prompt: list[int], ids: list[int]) -> None:
        self.sampled(prompt, ids)

    def begins(self, prompt: list[int]) -> None:
        self.request(prompt)

    def ends(self, prompt: list[int], ids: list[int], steps: list[list[int]]) -> None:
        self.sequence("0", prompt, ids, [-1.0] * len(ids), steps)

    def of_sequence(self, **fields: Any) -> None:
        self.lines[-1].update(fields)

    def hooked(self, *targets: str) -> None:
        self.put("hooks", hooked=list(targets))

    def scores(self, value: float, gradients: bool = True, model: Any = 1, **more: Any) -> None:
        self.trainer([COMPLETION], [[value] * 3], gradients, model, **more)

    def row(self, ids: list[int], begin: int = 0, first: int = 0, **damage: Any) -> None:
        self.stretches([(0, begin, ids, counted(ids, first))], **damage)

    def rows(self, *rows: Any) -> None:
        self.stretches([(row, begin, ids, counted(ids, first)) for row, (ids, begin, first) in enumerate(rows)])

    def in_order(self, order: list[int], gradients: bool) -> None:
        rows = [[*ENDING_AT_ONCE[number], 0][:2] for number in order]
        for each in (gradients, True):
            self.trainer(rows, [[-number - 1.0] * 2 for number in order], each)

    def named_otherwise(self) -> None:
        for line in self.lines:
            if "request" in line:
                line["request"] = f"chat{line['request']}"

    def third_request_first(self) -> None:
        asked = [place for place, line in enumerate(self.lines) if line["kind"] == "request"]
        self.lines.insert(asked[0], self.lines.pop(asked[2]))


def counted(ids: list[int], first: int) -> list[float]:
    return [-float(first + place) for place in range(len(ids))]


def table_of(folder: Path) -> TokenTable:
    (table,) = open_tables(folder)
    return table


def read(folder: Path, faults: Faults | None = None) -> TokenBatch:
    return concatenate(table_of(folder).batches(faults or Faults(), PromptNumbers()))


def cases() -> Iterator[Any]:
    table = yaml.safe_load(Path(__file__).with_name("recorded_tokens.yaml").read_text())
    for sentence, found in table.items():
        for number, case in enumerate(found if isinstance(found, list) else [found]):
            yield pytest.param(case, id=f"{sentence} {number}")


@pytest.mark.parametrize("case", list(cases()))
def test_a_recording_has_the_tokens_and_logprobs_of_the_table(case: dict[str, Any], tmp_path: Path) -> None:
    process = Trained(tmp_path)
    process.sampling(0, temperature=0.7)
    folder = process.play(case["course"]).write()
    said = "\n".join(table_of(folder).part.not_seen)
    assert [part for part in case.get("said", ()) if part not in said] == []
    assert [part for part in case.get("unsaid", ()) if part in said] == []
    if case.keys() <= {"course", "said", "unsaid"}:
        return
    faults = Faults()
    batch = read(folder, faults)
    assert (batch.sequences, faults.count) == (case.get("sequences", batch.sequences), case.get("faults", 0))
    columns = {"ids": batch.token_id_T, "trainer": batch.trainer_logprobs_T, **batch.token_columns}
    columns["base"] = columns.pop("base_logprob", None)
    for name in case.keys() & {"ids", "trainer", "base", "rollout_version", "trainer_version"}:
        found = np.sort(columns[name]) if "in_any_order" in case else columns[name]
        assert np.array_equal(found, np.array(case[name], dtype=float), equal_nan=True), name


def test_a_recording_is_a_table_with_both_sides(tmp_path: Path) -> None:
    batch = read(SMALL.write(tmp_path))
    assert np.allclose(batch.trainer_logprobs_T, batch.rollout_logprobs_T, atol=1e-5)
    assert set(batch.prompt_names_S) == {name_of_prompt([100 + v, n, 7]) for v in range(3) for n in range(2)}
    assert list(batch.prompt_token_ids_S[0]) == [100, 0, 7]


def test_tokens_have_the_version_of_the_weights_that_sampled_them(tmp_path: Path) -> None:
    batch = read(SMALL.write(tmp_path))
    assert sorted(set(batch.token_columns["rollout_version"])) == [0, 1, 2]
    assert np.array_equal(batch.token_columns["rollout_version"], batch.token_columns["trainer_version"])
    assert np.array_equal(batch.sequence_columns["step"], [v for v in range(3) for _ in range(4)])


def test_a_trainer_that_scores_after_the_update_is_a_version_ahead(tmp_path: Path) -> None:
    batch = read(World(prompts=2, samples=2, tokens=6, late=True).write(tmp_path))
    assert set(batch.token_columns["trainer_version"] - batch.token_columns["rollout_version"]) == {1}


def test_sampling_parameters_come_from_the_recording(tmp_path: Path) -> None:
    sampling = table_of(SMALL.write(tmp_path, top_k=-1, top_p=0.9)).part.sampling
    assert (sampling["temperature"], sampling["top_k"], sampling["top_p"]) == (0.7, 0, 0.9)


@pytest.mark.parametrize(("first", "version"), [([], 0), (["load"], 1)])
def test_only_what_was_sampled_from_the_first_weights_is_scored(first: list[str], version: int, tmp_path: Path) -> None:
    process = Trained(tmp_path)
    process.sampling(0)
    table = table_of(process.play([*first, "one", "load", "one"]).write())
    (batch,) = table.batches(Faults(), PromptNumbers())
    assert set(table.export.scorable(table.path, batch).token_columns["rollout_version"]) == {version}


def test_a_process_that_trains_nothing_has_no_old_policy(tmp_path: Path) -> None:
    process = Trained(tmp_path)
    process.sampling(0)
    process.play(["one", {"scores": -4}])
    # By its class and number it could be the model that the first process trains.
    process.beside(200).trainer([COMPLETION], [[-2] * 3], gradients=False)
    process.opened()
    assert list(read(tmp_path).trainer_logprobs_T) == [-4] * 3
