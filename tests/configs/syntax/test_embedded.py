import pytest

from rlaudit.configs.syntax.embedded import scalar_commands
from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.yaml_text import parse_plain_yaml


@pytest.mark.parametrize(
    "text",
    [
        "run: |\n  set -e\n  vllm serve m \\\n    --x 1\n",
        "run: >\n  vllm serve m\n  --x 1\n",
        "run: >-\n    vllm serve m\n    --x\n    1\n",
        'run: "vllm serve m \\\n  --x 1"\n',
        'run: "set -e\\nvllm\\u0020serve \\x6d --x 1"\n',
        "run: 'vllm serve ''m''\n  --x 1'\n",
        "run: vllm serve m --x 1 # comment\n",
        "run: vllm serve m\n  --x 1\n",
        "run: |\r\n  vllm serve m \\\r\n    --x 1\r\n",
    ],
)
def test_the_words_of_a_script_in_any_style_of_scalar_stand_where_they_are_written(text: str) -> None:
    node = parse_plain_yaml(text, "f.yaml")[0].get("run")
    assert node is not None
    command = scalar_commands(node, LineIndex(text, "f.yaml"))[-1]
    assert [word.value for word in command.words] == ["vllm", "serve", "m", "--x", "1"]
    for word in command.words[3:]:
        assert text[word.place.start : word.place.end] == word.value
    assert command.words[3].place.line == text[: command.words[3].place.start].count("\n") + 1
