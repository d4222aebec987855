import pytest

from rlaudit.configs.syntax.shell_arithmetic import evaluated

KNOWN = {"a": "6", "b": " 4 ", "octal": "010", "word": "x"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + b * 2", 14), ("(a + $b) * ${a}", 60), ("-7 / 2", -3), ("-7 % 2", -1), ("7 / -2", -3), ("+a - -b", 10),
    ],
)  # fmt: skip
def test_sums_products_and_brackets_are_those_of_a_shell(text: str, value: int) -> None:
    assert evaluated(text, KNOWN.get) == value


@pytest.mark.parametrize(
    "text",
    ["c + 1", "word", "octal", "a / 0", "a > b", "a ** b", "a << 2", "08", "", "a +", "${a:-1}", "a b", "1.5", "f(1)",
     "-" * 499 + "1", "(" * 250 + ")" * 250, "9" * 400 + "*9", "1" + "+1" * 249],
)  # fmt: skip
def test_what_is_not_told_or_not_read_is_no_number(text: str) -> None:
    assert evaluated(text, KNOWN.get) is None
