"""Words of a server's command that a Python program adds to a list."""

from packaging.version import Version
from reading import read_one

from rlaudit.configs.dialects.vllm.serve import DIALECT as SERVE
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Unknown

STARTED = """\
import subprocess, sys
words = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", "org/policy"]
words += ["--max-num-seqs", "16"]
if sys.argv:
    words.extend(["--enable-prefix-caching", "--seed", "1"])
words.append("--enforce-eager")
subprocess.Popen(words)
"""


def test_what_a_program_adds_to_the_words_of_a_server_is_read_and_under_a_condition_open() -> None:
    config = read_one(SERVE, STARTED, "0.18.1", "run.py")
    assert config.engine["max_num_seqs"].value == 16 and config.engine["enforce_eager"].value is True
    assert isinstance(config.engine["enable_prefix_caching"].value, Unknown)
    assert isinstance(config.engine["seed"].value, Unknown)
    assert config.write("max_num_seqs", 32) is None


def test_a_list_of_another_function_or_given_anew_gets_nothing_of_it() -> None:
    text = 'def a():\n    words = ["vllm", "serve", "m"]\n    run(words)\ndef b(words):\n    words += ["--seed", "4"]\n'
    assert "seed" not in read_one(SERVE, text, "0.18.1", "run.py").engine
    anew = text.replace("def b(words):\n", '    words = ["vllm", "bench"]\n')
    assert "seed" not in read_one(SERVE, anew, "0.18.1", "run.py").engine


def test_hostile_lists_are_passed_over() -> None:
    deep = (
        "words = ['vllm', 'serve', 'm']\n"
        + "".join(f"{' ' * at}if x:\n" for at in range(60))
        + " " * 60
        + "words += y\n"
    )
    source = Source("run.py", deep)
    assert SERVE.recognise(source)
    assert len(SERVE.read(source, Version("0.18.1"))) == 1
