"""What holds at several places of a file is one finding or one block with the places."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rlaudit.cli.app import run

START = "  swift rollout --model m --vllm_max_num_seqs 9\n"


TextOf = Callable[[str, str], str]


@pytest.fixture
def text_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> TextOf:
    def text(name: str, content: str) -> str:
        (tmp_path / name).write_text(content)
        monkeypatch.chdir(tmp_path)
        run(["inspect", name, "--from", "0.8.5", "--to", "0.18.1"])
        return capsys.readouterr().out

    return text


def test_a_fact_that_holds_at_several_lines_stands_once_with_the_lines(text_of: TextOf) -> None:
    reaches = "llm.llm_engine.model_executor.driver_worker.load(1)\n"
    text = text_of("a.py", f"from vllm import LLM\nllm = LLM('m', enable_prefix_caching=False)\n{reaches * 3}")
    (line,) = (line for line in text.splitlines() if line.startswith("   This line takes model_executor"))
    assert line.endswith(" Also in lines 4, 5.")
    assert "3 warnings" in text
    assert "Change or remove the weight update in line 3, the weight update in line 4" in text


def test_branches_that_start_the_same_engine_share_what_is_said_of_them(text_of: TextOf) -> None:
    text = text_of("a.sh", f'if [ "$X" ]; then\n{START}else\n{START}fi\n{START.replace("9", "$N")}')
    titles = [line for line in text.splitlines() if line.startswith(" Settings that move")]
    assert [title[title.index("(") :] for title in titles] == ["(lines 2, 4)", "(line 6)"]
