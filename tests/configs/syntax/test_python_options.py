"""Options of a program's own command line, and dictionaries that get their keys later."""

from textwrap import dedent

import pytest

from rlaudit.configs.draft import by_file
from rlaudit.configs.syntax.node import Unknown
from rlaudit.configs.syntax.python_calls import Call, calls

PARSER = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--tp-size", "-t", type=int, default=2)
parser.add_argument("--eager", action="store_true")
parser.add_argument("--model", required=True)
parser.add_argument("--heat", type=float, default="0.7")
parser.add_argument("--seed", type=int, default=None)
parser.add_argument("--x", dest="share", default=0.5)
"""
ARGUMENTS = "LLM(tp=args.tp_size, eager=args.eager, share=args.share)"


def call(text: str) -> Call:
    (found,) = calls(dedent(text), "train.py", {"LLM"})
    return found


def plain(text: str) -> dict:
    return {name: node.plain() for name, node in call(text).arguments.items()}


@pytest.mark.parametrize("use", [
    f"args = parser.parse_args()\n{ARGUMENTS}", f"args, rest = parser.parse_known_args()\n{ARGUMENTS}",
    f"def parse():\n    return parser.parse_args()\nargs = parse()\n{ARGUMENTS}",
    f"def main(args):\n    {ARGUMENTS}\nargs = parser.parse_args()\nmain(args)",
    "class A:\n    def __init__(self, args):\n        self.args = args\n"
    f"        {ARGUMENTS.replace('args.', 'self.args.')}\nargs = parser.parse_args()\nA(args)",
])  # fmt: skip
def test_an_option_is_taken_at_its_default_and_named(use):
    assert plain(PARSER + use) == {"tp": 2, "eager": False, "share": 0.5}
    assert call(PARSER + use).options == {"tp": "tp_size", "eager": "eager", "share": "share"}


def test_a_null_that_is_the_default_is_one_by_reference():
    setting = by_file("a", call(f"{PARSER}args = parser.parse_args()\nLLM(a=args.seed)").arguments["a"])
    assert setting.value is None and setting.through == "args.seed"


@pytest.mark.parametrize("name", ["model", "heat", "nowhere"])
def test_an_option_that_has_no_plain_default_is_not_known(name):
    found = call(f"{PARSER}args = parser.parse_args()\nLLM(a=args.{name})")
    assert isinstance(found.arguments["a"].value, Unknown)
    assert not found.options


def test_an_option_that_the_program_changes_has_no_default_any_more():
    found = plain(f"{PARSER}args = parser.parse_args()\nargs.tp_size = count()\nLLM(a=args.tp_size)")
    assert isinstance(found["a"], Unknown)


def test_fields_of_a_dataclass_that_a_parser_fills_are_options_too():
    text = """
    @dataclass
    class Base:
        heat: float = field(default=0.9, metadata={})
    @dataclass
    class Script(Base):
        model: str
        tp: int = 4
    script, training = HfArgumentParser((Script, GRPOConfig)).parse_args_into_dataclasses()
    LLM(tp=script.tp, heat=script.heat, model=script.model, lr=training.lr)
    """
    found = plain(text)
    assert (found["tp"], found["heat"]) == (4, 0.9)
    assert isinstance(found["model"], Unknown)
    assert isinstance(found["lr"], Unknown)


def test_an_attribute_of_something_else_is_no_option():
    assert isinstance(plain(f"{PARSER}args = parser.parse_args()\nLLM(a=config.tp_size)")["a"], Unknown)


def test_a_dictionary_that_an_object_keeps_has_the_keys_that_it_gets_in_the_same_method():
    text = """
    class A:
        def __init__(self, flag):
            self.kwargs = {"model": "m"}
            self.kwargs["cache"] = False
            if flag:
                self.kwargs["seed"] = 1
            LLM(**self.kwargs)
    """
    found = plain(text)
    assert (found["model"], found["cache"]) == ("m", False)
    assert isinstance(found["seed"], Unknown)


def test_a_key_that_another_method_sets_is_not_known():
    text = """
    class A:
        def __init__(self):
            self.kwargs = {"cache": True}
            LLM(**self.kwargs)
        def later(self):
            self.kwargs["cache"] = False
    """
    assert isinstance(plain(text)["cache"], Unknown)


def test_a_dictionary_of_an_object_that_is_updated_with_anything_is_open():
    text = """
    class A:
        def __init__(self, more):
            self.kwargs = {"cache": True}
            self.kwargs.update(more)
            LLM(**self.kwargs)
    """
    found = call(text)
    assert isinstance(found.arguments["cache"].value, Unknown)
    assert found.open


def test_what_is_set_after_a_dictionary_became_unknown_is_known():
    text = """
    def make(extra):
        kwargs = {"cache": True, "seed": 1}
        kwargs.update(extra)
        kwargs["cache"] = False
        LLM(**kwargs)
    """
    found = call(text)
    assert found.arguments["cache"].plain() is False
    assert isinstance(found.arguments["seed"].value, Unknown)
    assert found.open


def test_a_key_of_a_dictionary_from_elsewhere_is_known_and_the_rest_is_open():
    found = call("def make(config):\n    kwargs = config.get('x')\n    kwargs['cache'] = False\n    LLM(**kwargs)")
    assert found.arguments["cache"].plain() is False
    assert found.open


def test_of_two_dictionaries_of_one_name_no_key_is_known():
    text = "kwargs = {'a': 1}\nkwargs['b'] = 2\nif x:\n    kwargs = {'c': 3}\nLLM(**kwargs)"
    found = call(text)
    assert "b" not in found.arguments
    assert found.open


def test_a_dictionary_of_a_branch_is_known_where_it_is_used_in_the_same_branch():
    text = """
    if todo:
        kwargs = dict(dtype="bfloat16", seed=0)
        if args.eager:
            kwargs["eager"] = True
        kwargs["cache"] = False
        LLM(**kwargs)
        kwargs = {"seed": 1}
        kwargs["other"] = 2
    """
    found = call(text)
    assert (found.arguments["dtype"].plain(), found.arguments["seed"].plain()) == ("bfloat16", 0)
    assert isinstance(found.arguments["eager"].value, Unknown)
    assert "other" not in found.arguments
    assert not found.open


@pytest.mark.parametrize(("expression", "value"), [
    ("1 if args.eager else 2", 2),
    ("1 if not args.eager else 2", 1),
    ("args.share if args.seed else 0.9", 0.9),
    ("3 if count() else 3", 3),
])  # fmt: skip
def test_a_choice_by_a_switch_is_the_one_that_is_taken(expression, value):
    assert call(f"{PARSER}args = parser.parse_args()\nLLM(a={expression})").arguments["a"].value == value


def test_a_choice_by_anything_else_may_be_either():
    unknown = call(f"{PARSER}args = parser.parse_args()\nLLM(a=3 if count() else 4)").arguments["a"].value
    assert isinstance(unknown, Unknown) and unknown.among == (3, 4)
