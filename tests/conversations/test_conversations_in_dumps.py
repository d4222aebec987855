"""Conversations in the dumps of frameworks, a turn a record: counted, and silent if the history is as it was."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conversation_logs import conversations

from rlaudit.cli.app import run


def prime_rl(folder, records):
    return _lines(
        folder / "token_exports" / "step_4" / "rank_0.jsonl",
        [
            {
                "schema_version": 1, "step": 4, "export_step": 4, "rank": 0, "micro_step": 0, "micro_sequence_idx": 0,
                "export_sequence_idx": number, "env_name": "agent", "token_ids": [*prompt, *answer],
                "position_ids": list(range(len(prompt) + len(answer))),
                "loss_mask": [*[False] * len(prompt), *[True] * len(answer)],
                "advantages": [0.5] * (len(prompt) + len(answer)), "rewards": [1.0] * (len(prompt) + len(answer)),
                "inference_logprobs": [*[0.0] * len(prompt), *rollout],
                "trainer_logprobs": [*[0.0] * len(prompt), *trainer],
                "entropy": [0.5] * (len(prompt) + len(answer)),
            }
            for number, (prompt, answer, rollout, trainer) in enumerate(records)
        ],
    )  # fmt: skip


def nemo_rl(folder, records):
    return _lines(
        folder / "train_data_step3.jsonl",
        [
            {
                "content": ["a turn"], "rewards": [1.0], "input_lengths": [len(prompt) + len(answer)], "idx": number,
                "token_ids": [[*prompt, *answer]], "token_loss_mask": [[*[0] * len(prompt), *[1] * len(answer)]],
                "sample_loss_mask": [1.0], "advantages": [[0.2] * (len(prompt) + len(answer))],
                "generation_logprobs": [[*[0.0] * len(prompt), *rollout]],
                "prev_logprobs": [[*[0.0] * len(prompt), *trainer]],
            }
            for number, (prompt, answer, rollout, trainer) in enumerate(records)
        ],
    )  # fmt: skip


def parquet_of_lists(folder, records):
    path = folder / "turns.parquet"
    rows = [
        {
            "prompt_id": str(number), "sample_id": 0, "prompt_token_ids": prompt, "token_id": answer,
            "rollout_logprob": rollout, "trainer_logprob": trainer,
        }
        for number, (prompt, answer, rollout, trainer) in enumerate(records)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def _lines(path, records):
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("written", [prime_rl, nemo_rl, parquet_of_lists])
@pytest.mark.parametrize("dose", [0.0, 0.2])
def test_turns_are_counted_in_every_dump_that_has_their_ids(written, dose, tmp_path):
    made = conversations("end token lost", dose=dose, conversations=12, trainer="as sent")
    records = [
        (record["prompt_token_ids"], record["token_id"], record["rollout_logprob"], record["trainer_logprob"])
        for record in made.records
    ]
    report = tmp_path / "report.json"
    log = written(tmp_path / "log", records) if written is not parquet_of_lists else written(tmp_path, records)
    run(["compare", str(log), "--temperature", "1", "--quiet", "--output", f"json:{report}"])
    (table,) = json.loads(report.read_text())["comparisons"]
    counted = table["conversations"]
    assert (counted["turns"] - counted["conversations"], counted["changed"]) == (made.later, made.changed)
    assert counted["unjoined"] == 0
