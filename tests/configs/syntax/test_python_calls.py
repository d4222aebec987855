import pytest

from rlaudit.configs.syntax.python_calls import Call, calls
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.unknown import Unknown


def one(text: str) -> Call:
    (call,) = calls(text, "run.py", {"LLM"})
    return call


def argument(text: str, name: str = "x") -> object:
    node = one(text).arguments[name]
    return node.plain()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("LLM(x=-1)", -1), ("LLM(x=True)", True), ("LLM(x=None)", None), ("LLM(x='a' 'b')", "ab"),
        ("LLM(x=torch.bfloat16)", "bfloat16"), ("LLM(x=[1, (2, 3)])", [1, [2, 3]]),
        ("LLM(x={'a': {'b': 1}})", {"a": {"b": 1}}),
        ("N = 2\nLLM(x=N * 3 + 1)", 7), ("N: int = 2\ndef f():\n    LLM(x=N)", 2), ("M = 'm'\nLLM(x=f'{M}-1')", "m-1"),
        ("K = dict(x=1)\nLLM(**K)", 1), ("LLM(**{'x': 1, **{'y': 2}})", 1),
        ("LLM(x=dict(a=3))", {"a": 3}), ("if __name__ == '__main__':\n    N = 4\n    LLM(x=N)", 4),
        ("LLM(x=not True)", False), ("if c:\n    K = {'x': 5}\n    y = 1\n    LLM(**K)", 5),
        ("N = 1\ndef f():\n    N = 2\n    LLM(x=N)", 2), ("def f(N):\n    pass\nN = 1\nLLM(x=N)", 1),
        ("from vllm import LLM as Engine\nEngine(x=1)", 1),
    ],
)  # fmt: skip
def test_what_the_file_tells_is_known(text: str, value: object) -> None:
    assert argument(text) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f(n):\n    LLM(x=n)", "argument of f()"),
        ("N = 1\nN = 2\nLLM(x=N)", "more than once"),
        ("if c:\n    N = 1\nelse:\n    N = 2\nLLM(x=N)", "more than once"),
        ("N = 1\ndef f():\n    global N\n    N = 2\nLLM(x=N)", "shared between functions"),
        ("class C:\n    N = 1\nLLM(x=N)", "assigned nowhere"),
        ("for N in y:\n    LLM(x=N)", "several values in a loop"),
        ("from a import N\nLLM(x=N)", "imported"),
        ("LLM(x=N)", "assigned nowhere"),
        ("LLM(x=os.environ.get('N', 1))", "is known only when it runs"),
        ("LLM(x=f(1))", "f(1) is known only when it runs"),
        ("LLM(x=1 / 0)", "computation fails"),
        ("N = N2\nN2 = N\nLLM(x=N)", "too deeply"),
        ("K = {'x': 1}\nif c:\n    K['x'] = 2\nLLM(**K)", "line 3 changes K"),
        ("K = {'x': 1}\nK['x'] = 2\nLLM(**K)", "line 2 changes K"),
        ("K = {'x': 1}\ndef f():\n    K['x'] = 2\nLLM(**K)", "line 3 changes K"),
        ("K = {'x': 1}\nK.update(y=2)\nLLM(**K)", "line 2 changes K"),
        ("K = {'x': 1}\nK.pop('x', None)\nLLM(**K)", "line 2 changes K"),
        ("K = {'x': 1}\nfor k in c:\n    K[k] = c[k]\nLLM(**K)", "line 3 changes K"),
        ("def f(n):\n    LLM(x=n)\nf(1)", "argument of f()"),
        ("def f(n):\n    n = n or 2\n    LLM(x=n)", "argument of f()"),
        ("def g():\n    return 1\nLLM(x=g())", "g() is known only when it runs"),
        ("class E:\n    def f(self):\n        self.n = 1\n        LLM(x=self.n)", "self.n is known only when"),
        ("LLM(x=args.x)", "args.x is known only when it runs"),
    ],
)  # fmt: skip
def test_everything_else_is_unknown_with_the_reason(text: str, reason: str) -> None:
    value = argument(text)
    assert isinstance(value, Unknown) and reason in value.reason


@pytest.mark.parametrize(
    "between",
    ["K.update(x=2)", "change(K)", "if d:\n        K = {'x': 2}", "K |= {'x': 2}", "L = K"],
)
def test_a_dictionary_of_a_branch_that_may_have_changed_before_its_call_is_left_open(between: str) -> None:
    call = one(f"if c:\n    K = {{'x': 1}}\n    {between}\n    LLM(**K)\nelse:\n    K = {{}}")
    assert call.open and "x" not in call.arguments


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f(**kw):\n    LLM(x=1, **kw)", "**kw: kw is an argument of f()"),
        ("K = {'x': 1}\nK.update(y)\nLLM(x=1, **K)", "line 2 changes K"),
        ("LLM(x=1, **{k: v for k, v in K.items() if k in known})", "is known only when it runs"),
        ("LLM(*a, x=1)", "starred"),
        ("K = {**other(), 'x': 1}\nLLM(**K)", "other()"),
    ],
)
def test_a_call_that_may_get_more_keywords_says_why(text: str, reason: str) -> None:
    assert reason in one(text).open and one(text).arguments["x"].value == 1


def test_a_class_is_followed_through_subclasses_and_ray() -> None:
    text = "class My(LLM): pass\nMy(a=1)\nray.remote(num_gpus=1)(My).options(n=1).remote(a=2)\nvllm.LLM.remote(a=3)\n"
    assert [call.arguments["a"].value for call in calls(text, "run.py", {"LLM"})] == [1, 2, 3]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_places_count_characters_and_not_bytes(newline: str) -> None:
    text = newline.join(["s = 'äöü€😀'", "LLM('é', x='ß', y=2)", ""])
    call = one(text)
    for name, node in call.arguments.items():
        assert node.key is not None
        assert text[node.key.start : node.key.end] == name
        assert text[node.place.start : node.place.end] == node.text
    assert text[call.place.start : call.place.end] == "LLM('é', x='ß', y=2)"


@pytest.mark.parametrize(
    "text",
    [
        "LLM(",
        "LLM(" * 5000,
        "x=" + "-" * 50000 + "1",
        "LLM(x=" + "(" * 300 + ")" * 300 + ")",
        "LLM()\n" * 1000,
        "a\0b",
    ],
)
def test_what_cannot_be_parsed_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(UnreadableText) as refusal:
        calls(text, "run.py", {"LLM"})
    assert str(refusal.value)


def test_what_is_deeper_than_it_is_followed_is_not_known() -> None:
    assert argument("LLM(x=" + "-" * 40 + "1)") == 1
    assert isinstance(one("LLM(x=" + "-" * 80 + "1)").arguments["x"].value, Unknown)


def test_dictionaries_that_double_end_in_unknown() -> None:
    text = (
        "a0 = {'x': 1}\n" + "".join(f"a{n} = {{'p': a{n - 1}, 'q': a{n - 1}}}\n" for n in range(1, 40)) + "LLM(x=a39)\n"
    )
    assert "nested too deeply" in str(argument(text))


def test_where_a_class_comes_from_and_what_a_subclass_takes_itself_are_told() -> None:
    text = "import verl.third_party.vllm as vllm\nclass Mine(vllm.LLM):\n    def __init__(self, *a, bundle, **k):"
    text += "\n        pass\nMine(x=1)"
    call = one(text)
    assert (call.name, call.origin, call.own) == ("LLM", "verl.third_party.vllm.LLM", {"bundle"})
    assert one("LLM(x=1)").origin == ""
    assert one("from .llms import LLM\nLLM(x=1)").origin == ".llms.LLM"
