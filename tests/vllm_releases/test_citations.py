"""The line of vLLM that `explain VERSION` and notes name for a value does not assign another one."""

import re

import pytest
from vllm_settings import resolved

from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.resolve import resolution_rules


def cited(version: str, machine: str) -> dict[str, tuple[str, str]]:
    """What each rule decides, where it is known, and the line that it cites."""
    resolution = resolved(version, machine)
    settings = [resolution.setting(name) for name in resolution_rules()]
    notes = {(one.name, str(one.value)): one.note for one in settings if not isinstance(one.value, Unknown)}
    lines = {name: (value, re.findall(r"vllm/[\w/]+\.py:\d+", note)) for (name, value), note in notes.items()}
    return {name: (value, found[0]) for name, (value, found) in lines.items() if found}


@pytest.mark.parametrize("machine", ["h100", "cpu"])
@pytest.mark.parametrize("version", ["0.8.5", "0.10.2", "0.18.1", "0.26.0", "0.33.0"])
def test_a_cited_line_assigns_no_other_value_and_is_not_of_another_platform(version: str, machine: str) -> None:
    known = Catalogue.at(version).resolvers
    citations = cited(version, machine)
    assert len(citations) > 8
    for name, (value, line) in citations.items():
        # The decisions that were read, and not what a config object declares.
        assigned = known[name].assigned if name in known else ()
        assert (line, value) in assigned or line not in {other for other, _ in assigned}, name
        assert f"platforms/{'cpu' if machine == 'h100' else 'cuda'}.py" not in line


@pytest.mark.parametrize("name", ["async_scheduling", "cudagraph_mode", "compilation_mode"])
def test_the_line_that_assigns_the_value_is_cited(name: str) -> None:
    value, line = cited("0.18.1", "h100")[name]
    assert (line, value) in Catalogue.at("0.18.1").resolvers[name].assigned
