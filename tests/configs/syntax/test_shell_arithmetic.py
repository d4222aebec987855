import pytest

from rlaudit.configs.syntax.shell_text import commands
from rlaudit.unknown import Unknown

KNOWN = "a=6\nb=' 4 '\noctal=010\nword=x\n"


def number(text: str) -> object:
    command = commands(f"{KNOWN}serve $(({text}))\n", "run.sh", damaged=lambda _error: None)[-1]
    return command.words[1].value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + b * 2", 14), ("(a + $b) * ${a}", 60), ("-7 / 2", -3), ("-7 % 2", -1), ("7 / -2", -3), ("+a - -b", 10),
    ],
)  # fmt: skip
def test_sums_products_and_brackets_are_those_of_a_shell(text: str, value: int) -> None:
    assert number(text) == str(value)


@pytest.mark.parametrize(
    "text",
    ["c + 1", "word", "octal", "a / 0", "a > b", "a ** b", "a << 2", "08", "${a:-1}", "a b", "f(1)",
     "-" * 499 + "1", "(" * 60 + ")" * 60, "9" * 400 + "*9", "1" + "+1" * 249, "010", "1, 2"],
)  # fmt: skip
def test_what_is_not_told_or_not_read_is_no_number(text: str) -> None:
    assert isinstance(number(text), Unknown)


@pytest.mark.parametrize(
    ("default", "value"),
    [("$((1024 * 2))", "2048"), ("$(((KNOWN + 1) * 2))", "26"), ('"$((3*4))"', "12"), ("$(( ( 8 - 2 ) / 3 ))", "2")],
)
@pytest.mark.parametrize("quote", ["", '"'])
def test_arithmetic_in_a_default_is_worked_out(default: str, value: str, quote: str) -> None:
    if quote:
        default = default.strip('"')
    script = f"KNOWN=12\nN={quote}${{N:-{default}}}{quote}\nserve $N\n"
    assert commands(script, "run.sh")[-1].words[1].value == value
