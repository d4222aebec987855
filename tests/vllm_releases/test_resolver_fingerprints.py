from extract_catalogue.fingerprint import decision, fingerprint
from vllm_sources import tree_of

from rlaudit.vllm.resolve import Function

BODY = """
    class EngineArgs:
        def defaults(self):
            '''Set defaults.'''
            {extra}
            if self.enable_prefix_caching is None:
                logger.info("{words}")
                self.enable_prefix_caching = {value}
"""
WATCHED = (Function("vllm/arg_utils.py", "EngineArgs.defaults", ("enable_prefix_caching",)),)


def short(extra: str = "self.other = 1", words: str = "on", value: str = "True") -> str:
    tree = tree_of(arg_utils=BODY.format(extra=extra, words=words, value=value))
    return fingerprint(tree, WATCHED)[0]


def test_another_decision_has_another_fingerprint() -> None:
    assert short() != short(value="self.is_supported")


def test_a_new_condition_around_the_decision_counts() -> None:
    plain = "class A:\n    def f(self):\n        self.x = True\n"
    guarded = "class A:\n    def f(self):\n        if self.gpu:\n            self.x = True\n"
    watched = (Function("vllm/a.py", "A.f", ("x",)),)
    assert fingerprint(tree_of(a=plain), watched)[0] != fingerprint(tree_of(a=guarded), watched)[0]


def test_other_values_logging_and_comments_do_not_count() -> None:
    assert short() == short(extra="self.more = 2  # new", words="caching enabled")


def test_passing_the_value_on_is_no_decision() -> None:
    passed = "self.config = CacheConfig(enable_prefix_caching=self.enable_prefix_caching)"
    assert short() == short(extra=passed)


def test_wording_of_an_error_does_not_count_but_raising_does() -> None:
    raising = "raise ValueError(f'{self.enable_prefix_caching} is bad')"
    other = "raise ValueError(f'{self.enable_prefix_caching} is not good')"
    assert short(extra=f"if self.enable_prefix_caching: {raising}") == short(
        extra=f"if self.enable_prefix_caching: {other}"
    )
    assert short(extra=f"if self.enable_prefix_caching: {raising}") != short()


def test_without_words_the_whole_function_counts() -> None:
    whole = (Function("vllm/arg_utils.py", "EngineArgs.defaults"),)
    trees = [tree_of(arg_utils=BODY.format(extra=extra, words="on", value="True")) for extra in ("a = 1", "a = 2")]
    assert len({fingerprint(tree, whole)[0] for tree in trees}) == 2


def test_a_returned_call_is_part_of_the_decision() -> None:
    sources = ["def f(x):\n    return Result(value=x)\n", "def f(x):\n    return Result(value=-x)\n"]
    whole = (Function("vllm/a.py", "f"),)
    assert len({fingerprint(tree_of(a=source), whole)[0] for source in sources}) == 2


def test_the_line_is_that_of_the_assignment() -> None:
    tree = tree_of(arg_utils=BODY.format(extra="pass", words="on", value="True"))
    line, assigned = fingerprint(tree, WATCHED)[1]
    assert assigned == f"{line}=True"
    number = int(line.removeprefix("vllm/arg_utils.py:"))
    assert tree.read("vllm/arg_utils.py").splitlines()[number - 1].strip() == "self.enable_prefix_caching = True"


def test_what_is_written_is_recorded_with_its_line_and_what_is_computed_is_not() -> None:
    source = """
        def f(x):
            x.mode = Mode.NONE
            x.mode = pick(x)
            x.mode = {Use.BATCH: 16,
                      Use.SERVER: 8}
            x.mode = True if x.gpu else x.other
    """
    _, lines = fingerprint(tree_of(a=source), (Function("vllm/a.py", "f", ("mode",)),))
    assert [line.partition(":")[2] for line in lines[1:]] == ["3=NONE", "5=16", "6=8", "7=True"]


def test_a_release_without_the_function_has_no_fingerprint() -> None:
    assert fingerprint(tree_of(other="x = 1"), WATCHED) == ("", [])


def test_a_reviewer_sees_the_statements_that_count() -> None:
    tree = tree_of(arg_utils=BODY.format(extra="self.other = 1", words="on", value="True"))
    shown = decision(tree, WATCHED)
    assert "self.enable_prefix_caching = True" in shown
    assert "other" not in shown
