import pytest

from rlaudit.configs.dialects.condition import Truth, compared, condition
from rlaudit.unknown import Unknown

OPEN = Unknown("only a run tells")
VALUES = {"on": True, "off": False, "n": 4, "name": "vllm", "empty": None, "open": OPEN, "@n": 4}


class Facts:
    def value(self, reference: str) -> object:
        return VALUES.get(reference)

    def compare(self, reference: str, sign: str, other: object) -> Truth:
        return compared(self.value(reference), sign, other)


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("on", True),
        ("off", False),
        ("missing", False),
        ("n", True),
        ("n > 3", True),
        ("n <= 3", False),
        ("n == 4", True),
        ("on == 1", False),
        ("missing > 3", False),
        ("missing == null", True),
        ("name == vllm", True),
        ("name != 'vllm'", False),
        ("name in (sglang, vllm)", True),
        ("name in (sglang, hf)", False),
        ("n == @n", True),
        ("empty is set", False),
        ("empty is not set", True),
        ("not on or n > 3", True),
        ("not (on or off)", False),
        ("on and off or on", True),
        ("off and open", False),
        ("on or open", True),
        ("open and off", False),
    ],
)
def test_a_condition_is_read_as_it_is_written(text: str, truth: bool) -> None:
    assert condition(text)(Facts()) is truth


@pytest.mark.parametrize(
    "text", ["open", "not open", "open and on", "off or open", "open == 3", "open is set", "open in (1)"]
)
def test_what_is_not_known_decides_nothing(text: str) -> None:
    assert condition(text)(Facts()) == OPEN


@pytest.mark.parametrize(
    "text",
    ["", "and", "a >> 3", "a ==", "(a", "a)", "a is", "a is sett", "a in b", "a in (", "not", "a b", "= 3", "a,b"],
)
def test_what_is_no_condition_says_what_is_wrong(text: str) -> None:
    with pytest.raises(ValueError, match="no condition"):
        condition(text)
