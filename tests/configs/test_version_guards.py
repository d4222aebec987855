"""Lines by which a program or a framework's copy stops under a release of vLLM."""

from pathlib import Path

import pytest
from packaging.version import Version
from reading import source_of

from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.framework_source.version_guards import version_guards

STOPS = {
    "the last branch of a chain": (
        "import vllm\nif Version(vllm.__version__) == Version('0.10.2'):\n  pass\nelse:\n  raise NotImplementedError\n"
    ),
    "an assert": "import vllm\nassert version.parse(vllm.__version__) <= version.parse('0.10.2')\n",
    "a name for the version": "V = metadata.version('vllm')\nif not V.startswith('0.10.'):\n  raise RuntimeError\n",
    "a range": (
        "import vllm\nif not Version('0.8') <= Version(vllm.__version__) < Version('0.12'):\n  raise ImportError\n"
    ),
    "a list": "from vllm import __version__ as v\nif v not in ('0.9.2', '0.10.2') and v != '1':\n  raise ImportError\n",
}
PASSES = {
    "a test on anything else": "import vllm\nif lora and vllm.__version__ != '0.10.2':\n  raise ValueError\n",
    "a branch that only imports": "import vllm\nif vllm.__version__ == '0.10.2':\n  import a\nelse:\n  import b\n",
    "a try that may catch it": "try:\n  assert vllm.__version__ == '0.10.2'\nexcept AssertionError:\n  pass\n",
    "another package": "if '1' == '2':\n  pass\nelse:\n  raise ImportError('vllm version')\n",
}


def stopping(text: str, vllm: str) -> list[int]:
    return [guard.place.line for guard in version_guards(source_of(text, "train.py"), None, Version(vllm))]


@pytest.mark.parametrize("text", STOPS.values(), ids=STOPS)
def test_a_guard_stops_only_the_releases_that_it_does_not_pass(text: str) -> None:
    assert stopping(text, "0.10.2") == []
    assert stopping(text, "0.18.1") == [
        next(at for at, line in enumerate(text.split("\n"), 1) if "raise" in line or "assert" in line)
    ]


@pytest.mark.parametrize("text", PASSES.values(), ids=PASSES)
def test_what_depends_on_anything_else_is_passed_by(text: str) -> None:
    assert stopping(text, "0.18.1") == []


def test_a_function_counts_in_the_program_and_where_a_copy_builds_the_engine(tmp_path: Path) -> None:
    text = "def check():\n  assert version('vllm') < '0.11'\ndef of(vllm_version):\n  assert vllm_version < '0.11'\n"
    (tmp_path / "roll").mkdir()
    (tmp_path / "roll" / "of_a_feature.py").write_text(text)
    (tmp_path / "roll" / "__init__.py").write_text("import vllm\n" + text.splitlines()[1].strip() + "\n")
    copy = Checkout(str(tmp_path), "roll", (str(tmp_path),))
    assert stopping(text, "0.18.1") == [2]
    (tmp_path / "roll" / "engine.py").write_text(text)
    found = version_guards(source_of("a: 1\n", "a.yaml"), copy, Version("0.18.1"), {"roll/engine.py"})
    assert [(Path(one.place.path).name, one.place.line) for one in found] == [("__init__.py", 2), ("engine.py", 2)]
