"""No text, however broken, makes a parser or a reader of plain vLLM fail or take long; most are refused."""

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.readers import config_file as vllm_config_file
from rlaudit.configs.readers import python as vllm_python
from rlaudit.configs.readers import serve as vllm_serve
from rlaudit.configs.readers import server_report as vllm_server_report
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.python_calls import calls
from rlaudit.configs.syntax.shell_text import commands
from rlaudit.configs.syntax.toml_text import parse_toml
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.configs.syntax.yaml_text import parse_plain_yaml

SEEDS = (
    "services:\n  s:\n    image: vllm/vllm-openai\n    command: [--model, m, --seed, '1']\n    environment: [A=1]\n",
    'run: |\n  export A=1\n  vllm serve m \\\n    --seed ${S:-1} "$@"\n',
    "#!/bin/bash\nA=(--seed 1)\nif x; then A+=(--b); fi\ncat > c.yaml <<EOF\nseed: $S\nEOF\n"
    'vllm serve m --config c.yaml "${A[@]}" -O3 --hf-overrides \'{"a": 1}\'\n',
    "tensor-parallel-size: 2\nenable-prefix-caching: false\nhf-overrides: {a: [1, 2]}\nseed: ${oc.env:S,1}\n",
    "import os\nfrom vllm import LLM, SamplingParams\nos.environ['VLLM_A'] = '1'\nK = dict(seed=1)\nK['a'] = 2\n"
    "def f(x):\n    return LLM('é', n=x.y, **K), SamplingParams(temperature=.5)\n",
    "non-default args: {'model': 'm', 'seed': 1, 'c': [1, {'d': 2}]}\n"
    "Initializing a V1 LLM engine (v0.18.1) with config: model='m', dtype=torch.bfloat16, c={'m': <A.B: 1>}\n",
    '{"vllm_config": {"model_config": {"model": "m", "seed": 1}}, "system_env": {"vllm_version": "0.18.1"}}\n',
    'FROM vllm/vllm-openai:x\nENV A=1 B=\'c d\'\nENTRYPOINT ["vllm", "serve"]\nCMD ["m", "--seed", "1"]\n',
    "[inference.vllm]\nseed = 1\na = [1, {b = \"c\"}]\n[[env]]\nd = '''e'''\n",
)
SCRAPS = (
    '"', "'", "$", "${", "}", "{", "[", "]", "\\", "\n", "\t", "\0", "&a ", "*a", "<<: ", "<<EOF\n", "`", "$(", ")",
    "(",
    "é", "\ud800", "\ufeff", "---\n", "#", "--no-", "=", "|\n", ">\n", '"""', "\r", "vllm serve ", "LLM(", "!!x ", "%",
    "@", ": ", "- ", "? ", "1" * 60, "😀", "\x85", "\u2028",
    "~", ";;", "&&", "esac", "fi", "done", "non-default args: {",
)  # fmt: skip
PATHS = ("x.yaml", "x.json", "x.sh", "x.py", "x.log", "x.toml")
READERS = (vllm_serve.DIALECT, vllm_config_file.DIALECT, vllm_python.DIALECT, vllm_server_report.DIALECT)
PARSERS = (parse_plain_yaml, parse_toml, commands, lambda text, path: calls(text, path, {"LLM"}))


def read_everything(text: str) -> None:
    for parse in PARSERS:
        try:
            parse(text, "x")
        except UnreadableText as error:
            assert str(error)
    for path in PATHS:
        for reader in READERS:
            read(reader, Source(path, text))


def read(reader: Dialect, source: Source) -> None:
    if reader.recognise(source):
        for config in reader.read(source, Version("0.18.1")):
            for edit in config.write("enable_prefix_caching", False) or ():
                assert 0 <= edit.start <= edit.end <= len(source.text)


@st.composite
def broken(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 5))):
        at, end = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        how = draw(st.sampled_from(("insert", "cut", "repeat", "characters")))
        if how == "insert":
            text = text[:at] + draw(st.sampled_from(SCRAPS)) + text[at:]
        elif how == "cut":
            text = text[:at] + text[min(end, at + 30) :]
        elif how == "repeat":
            text = text[:end] + text[at:end] * draw(st.integers(0, 2)) + text[end:]
        else:
            text = text[:at] + draw(st.text(max_size=4)) + text[at:]
    return text


@settings(max_examples=250, deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(broken())
def test_a_broken_file_is_read_or_refused(text: str) -> None:
    read_everything(text)


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve '" * 800,
        "vllm serve m --a b\n" * 500,
        "if x; then A=1\n" * 500 + "vllm serve $A\n",
        "cat <<A <<B\n" * 500 + "vllm serve x",
        "".join(f"export A{n}=1\nvllm serve m\n" for n in range(150)),
        "vllm serve x " + " ".join("--" + "e" * n for n in range(150)),
        "vllm serve x " + " ".join("--a." + "b." * n + "c 1" for n in range(100)),
        "vllm" + " " * 40_000,
        "vllm/" * 8_000 + "openai",
        "import vllm\n" + "def f(a):\n  x=1\n  LLM(m=x)\n" * 300,
        "import vllm\nif a: pass\n" + "elif a: pass\n" * 200 + "LLM(m=1)",
        "non-default args: {" + "'a': " * 3_000,
        "Initializing a V1 LLM engine (v0.18.1) with config: " + "model='x', " * 3_000,
        "FROM vllm/vllm-openai:x\nCMD [" + '"--a",' * 3_000 + '"b"]',
        'command: "vllm serve ' + "\\u00e9" * 3_000 + '"',
        "a: " + "A=1 " * 8_000 + "\nimage: vllm/vllm-openai\n",
    ],
    ids=lambda text: text[:12],  # pytest takes minutes over an id of 40,000 characters
)  # fmt: skip
def test_size_alone_costs_no_seconds(text: str) -> None:
    begun = time.process_time()
    read_everything(text)
    assert time.process_time() - begun < 5
