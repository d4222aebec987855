import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from rlaudit.discover import discover
from rlaudit.laboratory import factors
from rlaudit.laboratory.factor import Factor
from rlaudit.report.rendering import formats
from rlaudit.report.rendering.report_format import ReportFormat
from rlaudit.statistics import metrics
from rlaudit.statistics.measurement.metric import Metric

OFFER = "from pathlib import Path\n\nOFFER = Path({name!r})\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    folder = tmp_path / "offers_of_a_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "second.py").write_text(OFFER.format(name="b"))
    (folder / "first.py").write_text(OFFER.format(name="a"))
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith("offers_of_a_test")]:
        monkeypatch.delitem(sys.modules, name)
    return importlib.import_module("offers_of_a_test")


def test_a_file_is_all_it_takes_to_offer_something(package: ModuleType) -> None:
    assert list(discover(package, "OFFER", Path)) == ["a", "b"]


def test_two_files_that_offer_one_name_are_a_mistake(package: ModuleType) -> None:
    (Path(str(package.__file__)).parent / "third.py").write_text(OFFER.format(name="a"))
    with pytest.raises(ValueError, match="'a' is already offered by another file"):
        discover(package, "OFFER", Path)


@pytest.mark.parametrize("content", ["", "OFFER = 'not a path'\n"])
def test_a_file_that_offers_nothing_or_something_else_is_a_mistake(package: ModuleType, content: str) -> None:
    (Path(str(package.__file__)).parent / "third.py").write_text(content)
    with pytest.raises(TypeError, match=r"offers_of_a_test\.third must bind OFFER to a Path"):
        discover(package, "OFFER", Path)


def test_the_documentation_of_an_offer_is_that_of_the_file_that_binds_it(package: ModuleType) -> None:
    """Not of the file in which one of its functions was written: two offers may share a function."""
    offers = discover(package, "OFFER", Path)
    assert [offers.documentation(name) for name in offers] == ["", ""]
    documented = '"""The third."""\n' + OFFER.format(name="c")
    (Path(str(package.__file__)).parent / "third.py").write_text(documented)
    assert discover(package, "OFFER", Path).documentation("c") == "The third."


@pytest.mark.parametrize(
    ("folder", "name", "kind"),
    [(factors, "FACTOR", Factor), (metrics, "METRIC", Metric), (formats, "FORMAT", ReportFormat)],
)
def test_every_offer_is_named_after_its_file(folder: ModuleType, name: str, kind: type) -> None:
    files = {path.stem.replace("_", "-") for path in Path(folder.__path__[0]).glob("*.py")} - {"--init--"}
    assert {offer.replace("_", "-") for offer in discover(folder, name, kind)} == files


@pytest.mark.parametrize("name", sorted(discover(factors, "FACTOR", Factor)))
def test_every_factor_says_what_it_is_and_applies_each_of_its_levels(name: str) -> None:
    from rlaudit.laboratory.treatment import Treatment

    known = discover(factors, "FACTOR", Factor)
    factor = known[name]
    assert known.documentation(name)
    assert factor.setting
    plain = Treatment(version="0.18.1")
    treatments = [factor.apply(plain, level) for level in factor.levels or ("0.32.0", "0.8.5")]
    assert len({repr(treatment) for treatment in treatments}) == len(treatments)
