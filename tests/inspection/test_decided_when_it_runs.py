"""What a Python program decides when it runs is open, with its lines and the way to know it."""

from packaging.version import Version

from rlaudit.configs.source import Source
from rlaudit.inspection.read_configs import known_dialects, read_configs, recognise

TEXT = """\
from vllm import LLM, SamplingParams
SEED = 3
def main(args):
    llm = LLM(model="m", seed=SEED, tensor_parallel_size=args.tp)
    return SamplingParams(temperature=args.heat, top_p=1.0)
"""


def not_seen(text: str) -> str:
    """What is said to be open in a program."""
    source = Source("train.py", text)
    recognised, _ = recognise(source, known_dialects())
    return "; ".join(read_configs(source, recognised, (Version("0.8.5"), Version("0.18.1"))).not_seen)


def test_the_lines_that_a_run_decides_are_named_with_the_command_that_records_them() -> None:
    assert "train.py: what a run decides in lines 4, 5; `rlaudit record` writes it down" in not_seen(TEXT)


def test_a_loop_that_sets_variables_is_named_with_its_line() -> None:
    text = "import os\nfor name, value in {}.items():\n    os.environ[name] = value\n" + TEXT.replace("args.tp", "2")
    assert "what a run decides in lines 3, 8" in not_seen(text)


def test_a_program_of_literals_leaves_nothing_to_a_run() -> None:
    assert "a run decides" not in not_seen(TEXT.replace("args.tp", "2").replace("args.heat", "0.7"))
