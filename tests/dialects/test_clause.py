from pathlib import Path
from typing import Any

import pytest
from declared_text import read

from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.settings.rollout_config import Loss, Origin
from rlaudit.unknown import Unknown

NOT_THERE: Any = object()
CASES = [
    ("{key: '@a'}", "a: 3", 3),
    ("{key: '@a'}", "b: 3", NOT_THERE),
    ("{key: '@a'}", "a: null", NOT_THERE),
    ("{key: '@a', default: 7}", "b: 3", 7),
    ("{key: '@a', default: 7}", "a: null", 7),
    ("{key: '@a', default: 7, 'null': keep}", "a: null", None),
    ("{key: '@a', default: 7, 'null': nothing}", "a: null", NOT_THERE),
    ("{key: '@a', 'null': -1}", "a: null", -1),
    ("{key: '@a | @b'}", "b: 3", 3),
    ("{key: '@a | @b'}", "{a: null, b: 3}", 3),
    ("{key: '@a', value: true}", "a: lora", True),
    ("{value: mp}", "a: 1", "mp"),
    ("{key: '@a', map: {bf16: bfloat16}}", "a: bf16", "bfloat16"),
    ("{key: '@a', map: {bf16: bfloat16}}", "a: half", "half"),
    ("{key: '@a', map: {bf16: bfloat16, otherwise: auto}}", "a: half", "auto"),
    ("{key: '@a', map: {true: bfloat16}}", "a: 1", 1),
    ("{key: '@a', above: 1}", "a: 2", True),
    ("{key: '@a', above: 1}", "a: 1", False),
    ("{key: '@a', truth: true}", "a: 'yes'", True),
    ("{sum: ['@a', '@b']}", "{a: 2, b: 3}", 5),
    ("{sum: ['@a', '@b | 7']}", "a: 2", 9),
    ("[{if: '@b > 2', value: ray}, {value: uni}]", "b: 3", "ray"),
    ("[{if: '@b > 2', value: ray}, {value: uni}]", "b: 1", "uni"),
    ("[{if: '@b > 2', nothing: true}, {value: uni}]", "b: 3", NOT_THERE),
    ("[{key: '@a'}, {key: '@b', above: 1}]", "b: 3", True),
    ("{if: '@a is written', value: 1}", "a: null", 1),
    ("{key: '@a', sum: ['@b|1', '@a']}", "a: 2", 3),
    ("{key: '@a', sum: ['@b|1', '@c|4']}", "b: 2", NOT_THERE),
    ("{key: '@a', same as: '@b'}", "{a: 2, b: 3}", 3),
    ("{if: missing_base, value: 1}", "a: 2", NOT_THERE),
    ("{if: '@a is not written', value: 1}", "b: 1", 1),
]


@pytest.mark.parametrize(("clause", "config", "arrives"), CASES)
def test_a_clause_says_what_arrives(tmp_path: Path, clause: str, config: str, arrives: Any) -> None:
    found = read(tmp_path, f"engine: {{x: {clause}}}\n", f"sampler:\n  {config}\n").engine.get("x")
    assert (NOT_THERE if found is None else found.value) == arrives


@pytest.mark.parametrize(
    "clause",
    [
        "{key: '@a'}",
        "{key: '@a', above: 1}",
        "{key: '@a', map: {1: 2}}",
        "{sum: ['@a', '@b | 7']}",
        "{key: '@b', open: only the worker knows}",
        "{open: only the worker knows}",
        "[{if: '@a > 2', value: ray}, {value: uni}]",
    ],
)
def test_what_is_not_known_stays_open(tmp_path: Path, clause: str) -> None:
    config = read(tmp_path, f"engine: {{x: {clause}}}\n", "sampler: {a: '???', b: 3}\n")
    assert isinstance(config.engine["x"].value, Unknown)


def test_clauses_that_agree_settle_what_their_conditions_leave_open(tmp_path: Path) -> None:
    said = "engine: {x: [{if: '@a > 2', value: mp}, {value: mp}]}\n"
    assert read(tmp_path, said, "sampler: {a: '???'}\n").engine["x"].value == "mp"


def test_clauses_that_differ_are_all_listed(tmp_path: Path) -> None:
    said = "engine: {x: [{if: '@a > 2', value: ray}, {if: '@a > 1', value: mp}, {value: uni}]}\n"
    value = read(tmp_path, said, "sampler: {a: '???'}\n").engine["x"].value
    assert value.among == ("ray", "mp", "uni")
    assert value.reason.startswith("ray or mp or uni; ")


def test_what_is_written_without_effect_is_a_loss(tmp_path: Path) -> None:
    said = "engine: {x: {key: '@a', lost: not passed, because: the worker does not read it}}\n"
    config = read(tmp_path, said, "sampler: {a: 3}\n")
    (lost,) = config.lost
    assert (lost.name, lost.loss, lost.written, lost.certain) == ("x", Loss.NOT_PASSED, 3, True)
    assert "x" not in config.engine


def test_origin_and_place_are_those_of_the_file_or_of_the_framework(tmp_path: Path) -> None:
    engine = read(tmp_path, "engine: {x: {key: '@a'}, y: {value: 1}}\n", "sampler:\n  a: 3\n").engine
    assert (engine["x"].origin, engine["y"].origin) == (Origin.FILE, Origin.FRAMEWORK)
    assert engine["x"].place is not None and engine["x"].place.line == 2
    assert engine["y"].place is None


def test_keys_that_vllm_lacks_are_lost_from_a_mapping_that_is_passed_on(tmp_path: Path) -> None:
    said = "engine: {'*': {key: '@kwargs', unknown key: the namespace takes any name}}\n"
    config = read(tmp_path, said, "sampler: {kwargs: {max_num_seqs: 4, max_num_seq: 5}}\n")
    assert config.engine["max_num_seqs"].value == 4
    assert [(one.name, one.loss) for one in config.lost] == [("max_num_seq", Loss.UNKNOWN_KEY)]


GUARDED = """\
engine:
  logprobs_mode: {key: "@mode", default: processed_logprobs}
  seed: {key: "@seed"}
guarded: {because: the sampler leaves it out}
"""


def test_a_guarded_argument_is_lost_with_a_vllm_that_has_it_not(tmp_path: Path) -> None:
    old = read(tmp_path, GUARDED, "sampler: {mode: raw_logprobs, seed: 1}\n", "0.8.5")
    assert [(lost.name, lost.loss) for lost in old.lost] == [("logprobs_mode", Loss.UNKNOWN_KEY)]
    assert "logprobs_mode" not in old.engine and old.engine["seed"].value == 1
    assert "logprobs_mode" not in read(tmp_path, GUARDED, "sampler: {}\n", "0.8.5").engine
    assert read(tmp_path, GUARDED, "sampler: {}\n").engine["logprobs_mode"].value == "processed_logprobs"


def test_a_text_of_json_is_the_mapping_that_it_spells_and_the_codes_own_arguments_win(tmp_path: Path) -> None:
    said = 'engine: {"*": {key: "@more"}, seed: {value: 0, because: the sampler}}\n'
    config = read(tmp_path, said, """sampler: {more: '{"seed": 5, "dtype": "half"}'}\n""")
    assert config.engine["seed"].value == 0 and config.engine["dtype"].value == "half"
    assert [(lost.name, lost.loss) for lost in config.lost] == [("seed", Loss.OVERRULED)]


def test_a_section_that_may_be_decided_elsewhere_is_open(tmp_path: Path) -> None:
    entry = "{if: '@mode == server', because: another command starts it, lost: not passed}"
    said = f"engine: {{seed: {{key: '@seed', default: 3}}}}\nelsewhere: {{engine: {entry}}}\n"
    config = read(tmp_path, said, "sampler: {mode: '${oc.env:MODE}', seed: 1}\n")
    assert isinstance(config.engine, Elsewhere)
    assert not config.lost and not config.engine["seed"].known


@pytest.mark.parametrize(("more", "lost"), [("", ["seed", "own"]), ("arguments: true, ", ["seed"])])
def test_keys_of_a_mapping_that_nothing_names_are_lost(tmp_path: Path, more: str, lost: list[str]) -> None:
    said = (
        "engine: {max_num_seqs: {key: '@seqs | @old_seqs'}, enforce_eager: {key: '@deep.eager'}}\n"
        f"lost: [{{others of: '@', but: [http], {more}as: unknown key, because: it is not read}}]\n"
    )
    config = read(tmp_path, said, "sampler: {seqs: 1, old_seqs: 2, deep: {eager: true}, http: 3, seed: 4, own: 5}\n")
    assert [(one.name, one.loss) for one in config.lost] == [(name, Loss.UNKNOWN_KEY) for name in lost]
