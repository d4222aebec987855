"""Keywords that a release's SamplingParams does not take, on their ways into the call."""

import ast

import pytest
from packaging.version import Version

from rlaudit.configs.framework_source.refused_sampling import refused_sampling
from rlaudit.configs.framework_source.version_tests import VersionTests

NOW = Version("0.18.1")


def refused(body: str, to: Version = NOW) -> list[tuple[bool, bool]]:
    """`always` and `returned` of each keyword that is refused."""
    text = "def make(request, parameters):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    return [
        (one.always, one.returned)
        for one in refused_sampling(function, frozenset({"SamplingParams"}), VersionTests(to))
    ]


FILL = "kwargs = {}\nfor key in ['n', 'best_of']:\n    kwargs[key] = getattr(request, key)\n"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (FILL + "return SamplingParams(**kwargs)", [(True, True)]),
        (FILL + "made = SamplingParams(**kwargs)\nreturn made", [(True, True)]),
        (FILL + "self.made = SamplingParams(**kwargs)", [(True, False)]),
        ("return SamplingParams(best_of=2)", [(True, True)]),
        ("kwargs = {'best_of': 2}\nreturn SamplingParams(**kwargs)", [(True, True)]),
        ("kwargs = {}\nif request:\n    kwargs['best_of'] = 2\nreturn SamplingParams(**kwargs)", [(False, True)]),
        ("kwargs = {}\nif 'best_of' in parameters:\n    kwargs['best_of'] = 2\nreturn SamplingParams(**kwargs)", []),
        (FILL + "kwargs.pop('best_of')\nreturn SamplingParams(**kwargs)", []),
        (FILL + "kwargs = clean(kwargs)\nreturn SamplingParams(**kwargs)", []),
        ("return SamplingParams(n=2)\n" + FILL, []),
        ("return SamplingParams(best_of=2) if parse(vllm.__version__) < parse('0.9') else SamplingParams(n=2)", []),
        ("if parse(vllm.__version__) > parse('0.9'):\n    return SamplingParams(best_of=2)", [(True, True)]),
        (FILL + "return Other(**kwargs)", []),
    ],
)
def test_a_keyword_counts_where_it_arrives(body: str, found: list[tuple[bool, bool]]) -> None:
    assert refused(body) == found


def test_a_release_that_takes_it_refuses_nothing() -> None:
    assert not refused(FILL + "return SamplingParams(**kwargs)", Version("0.8.5"))
