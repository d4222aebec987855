import pytest

from rlaudit.configs.source import Source
from rlaudit.unknown import Unknown


@pytest.mark.parametrize("key", ["a[0]", "a.0", "a[1]", "a[2]", "a.2", "a[-1]", "a[x]"])
def test_an_element_that_a_list_does_not_have_is_not_known(key: str) -> None:
    value = Source("x.yaml", f"a: [5, 6]\nb: ${{{key}}}\n").yaml[0].plain()["b"]
    wanted = {"a[0]": 5, "a.0": 5, "a[1]": 6}
    assert value == wanted[key] if key in wanted else isinstance(value, Unknown)
