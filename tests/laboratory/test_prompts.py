from pathlib import Path

import pytest

from rlaudit.errors import UsageError
from rlaudit.laboratory.prompts import load_prompts


def test_a_text_file_holds_one_prompt_a_line_and_blank_lines_are_none(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text("first\n\n  \nsecond é\n", encoding="utf-8")
    assert load_prompts(str(path)).prompts == ("first", "second é")


def test_json_lines_hold_texts_chats_or_token_ids(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text(
        '{"prompt": "text"}\n{"messages": [{"role": "user", "content": "hi"}]}\n\n{"prompt_token_ids": [1, 2]}\n'
    )
    assert load_prompts(str(path)).prompts == (
        "text",
        [{"role": "user", "content": "hi"}],
        {"prompt_token_ids": [1, 2]},
    )


@pytest.mark.parametrize(
    "line", ['{"prompt": ""}', '{"messages": []}', '{"prompt_token_ids": []}', '{"prompt_token_ids": ["1"]}', '"text"']
)
def test_a_line_without_a_prompt_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text(f'\n{{"prompt": "fine"}}\n{line}\n')
    with pytest.raises(UsageError, match=r"some\.jsonl:3: expected an object"):
        load_prompts(str(path))


def test_the_digest_is_that_of_the_prompts_and_not_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "b.txt").write_text("one\n\ntwo")
    (tmp_path / "c.txt").write_text("two\none\n")
    digests = [load_prompts(str(tmp_path / f"{name}.txt")).digest for name in "abc"]
    assert digests[0] == digests[1] != digests[2]


def test_prompts_by_name_travel_with_rlaudit_and_those_that_are_not_there_say_which_do(tmp_path: Path) -> None:
    found = load_prompts("arithmetic")
    assert (found.name, len(found.prompts) >= 32) == ("arithmetic", True)
    with pytest.raises(UsageError, match=r"no prompts at .*nowhere\.txt") as raised:
        load_prompts(str(tmp_path / "nowhere.txt"))
    assert "arithmetic" in str(raised.value.hint)
