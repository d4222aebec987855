import pytest

from rlaudit.configs.syntax.interpolation import interpolate
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.yaml_text import parse_plain_yaml
from rlaudit.unknown import Unknown


def interpolated(text: str) -> tuple[Node, ...]:
    return tuple(interpolate(root) for root in parse_plain_yaml(text, ""))


def read(text: str) -> dict[str, object]:
    plain = interpolated(text)[0].plain()
    assert isinstance(plain, dict)
    return plain


def test_a_reference_takes_the_value_and_its_type() -> None:
    assert read("a: 3\nb: ${a}\nc: {d: '${a}', e: '${.d}', f: '${..b}'}\n") == {
        "a": 3, "b": 3, "c": {"d": 3, "e": 3, "f": 3},
    }  # fmt: skip


def test_a_reference_to_a_mapping_or_a_list_element_takes_all_of_it() -> None:
    assert read("a: {x: [1, 2]}\nb: ${a}\nc: ${a.x.1}\nd: ${a.x[0]}\n") == {
        "a": {"x": [1, 2]}, "b": {"x": [1, 2]}, "c": 2, "d": 1,
    }  # fmt: skip


def test_text_around_a_reference_is_joined_as_omegaconf_does() -> None:
    assert read("a: true\nb: 1\nc: x-${a}-${b}\nd: ${${e}}\ne: b\nf: \\${a}\n") == {
        "a": True, "b": 1, "c": "x-True-1", "d": 1, "e": "b", "f": "${a}",
    }  # fmt: skip


def test_defaults_of_resolvers_are_values_and_everything_else_is_unknown_with_the_reason() -> None:
    read_in = read("a: ${oc.env:TP,8}\nb: ${oc.env:TP}\nc: ${oc.select:x,no}\nd: ${eval:'1+1'}\ne: ${nowhere}\n")
    assert read_in["a"] == 8 and read_in["c"] == "no"
    for key, word in (("b", "TP"), ("d", "eval"), ("e", "nowhere")):
        value = read_in[key]
        assert isinstance(value, Unknown) and word in value.reason


def test_sums_of_registered_resolvers_are_worked_out() -> None:
    told = read(
        "a: 4\nb: ${mul:${a},2}\nc: ${int_div:9,${a}}\nd: ${not:${oc.select:e,false}}\nf: ${max:${sum:1,2},${a}}\n"
    )
    assert (told["b"], told["c"], told["d"], told["f"]) == (8, 2, True, 4)
    for text in ("${mul:a,2}", "${int_div:1,0}", "${not:word}", "${mul:${nowhere},2}", "${sub:}"):
        assert isinstance(read(f"a: {text}\n")["a"], Unknown)


def test_a_missing_key_of_a_composed_config_may_be_in_another_file() -> None:
    value = read("defaults: [base]\na: ${b.c}\nd: ${oc.select:b.c,1}\n")
    assert isinstance(value["a"], Unknown) and "defaults" in value["a"].reason
    assert isinstance(value["d"], Unknown)


@pytest.mark.parametrize(
    "text",
    [
        "a: ${b}\nb: ${a}\n",
        "a: {b: '${a}'}\n",
        "a: ${a}\n",
        "".join(f"k{n}: ${{k{n + 1}}}\n" for n in range(200)),
        "k0: [x, x]\n" + "".join(f"k{n}: ['${{k{n - 1}}}', '${{k{n - 1}}}']\n" for n in range(1, 40)),
        "a: " + "${" * 50 + "\n",
        "a: 1\nb: '" + "${a}" * 50_000 + "'\n",
    ],
    ids=["cycle", "parent", "self", "chain", "bomb", "open", "many"],
)  # fmt: skip
def test_loops_chains_and_explosions_end_in_unknown(text: str) -> None:
    (root,) = interpolated(text)
    todo, reasons = [root], []
    while todo:
        node = todo.pop()
        reasons += [node.value.reason] if isinstance(node.value, Unknown) else []
        todo += node.value.values() if isinstance(node.value, dict) else node.elements()
    assert reasons and all(reasons)


def test_places_stay_at_the_interpolation() -> None:
    text = "a: 3\nb: ${a}\n"
    node = interpolated(text)[0].get("b")
    assert node is not None and text[node.place.start : node.place.end] == "${a}"
