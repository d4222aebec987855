"""Keys of a mapping that a dialect does not name."""

from pathlib import Path

import pytest
from declared_text import read

from rlaudit.settings.rollout_config import Loss

SAID = """\
engine:
  max_num_seqs: {key: "@seqs | @old_seqs"}
  enforce_eager: {key: "@deep.eager"}
lost: [{others of: "@", but: [http], as: unknown key, because: it is not read}]
"""
CONFIG = "sampler: {seqs: 1, old_seqs: 2, deep: {eager: true}, http: 3, seed: 4, own: 5}\n"


@pytest.mark.parametrize(("more", "lost"), [("", ["seed", "own"]), ("arguments: true, ", ["seed"])])
def test_other_keys_of_a_mapping_are_lost(tmp_path: Path, more: str, lost: list[str]) -> None:
    config = read(tmp_path, SAID.replace("as: ", f"{more}as: "), CONFIG)
    assert [one.name for one in config.lost] == lost
    assert {one.loss for one in config.lost} == {Loss.UNKNOWN_KEY}
