"""Which transformers a project has on each side of a move, and which line of a program renders."""

from pathlib import Path

import pytest
from packaging.version import Version
from reading import source_of

from rlaudit.inspection.rendering_here import pinned_transformers, renders
from rlaudit.inspection.versions import Versions

SERVE = "vllm serve org/model\n"


def pinned(folder: Path, before: str, after: str, requirements: str) -> list[str | None]:
    (folder / ".git").mkdir()
    (folder / "requirements.txt").write_text(requirements)
    versions = Versions(Version(before), Version(after))
    sides = pinned_transformers(source_of(SERVE, str(folder / "run.sh")), versions)
    return [side and str(side.version) for side in sides]


def test_a_pin_of_transformers_holds_on_both_sides_while_vllm_alone_moves(tmp_path: Path) -> None:
    text = "vllm==0.20.0\ntransformers==4.57.6\n"
    assert pinned(tmp_path, "0.20.0", "0.32.0", text) == ["4.57.6", "4.57.6"]


def test_a_project_that_has_moved_says_nothing_of_the_transformers_before(tmp_path: Path) -> None:
    text = "vllm==0.32.0\ntransformers==5.17.0\n"
    assert pinned(tmp_path, "0.20.0", "0.32.0", text) == [None, "5.17.0"]


@pytest.mark.parametrize("line", ["transformers>=5", "sentence-transformers==5.1.0", ""])
def test_a_range_and_another_package_pin_no_release(tmp_path: Path, line: str) -> None:
    assert pinned(tmp_path, "0.18.1", "0.32.0", f"vllm==0.18.1\n{line}\n") == [None, None]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("chat", 2),
        ("chat, tokenize=True, add_generation_prompt=True", 2),
        ("chat, tokenize=False", None),
        ("chat, return_dict=False", None),
        ("chat, return_dict=True", None),
        ("chat, **options", None),
    ],
)
def test_a_call_renders_to_ids_unless_it_says_text_or_what_it_returns(arguments: str, line: int | None) -> None:
    text = f"from vllm import LLM\nids = tokenizer.apply_chat_template({arguments})\n"
    place = renders(source_of(text, "run.py"))
    assert (place and place.line) == line


def test_a_config_that_is_no_program_renders_nothing() -> None:
    assert renders(source_of("chat_template: apply_chat_template(chat)\n", "run.yaml")) is None
