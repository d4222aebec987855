"""Which transformers a model's config.json asks for."""

import json
import zipfile
from pathlib import Path

import pytest
from extract_catalogue.model_types import types_in, written

from rlaudit.engines.environments.trainer_packages import TRANSFORMERS
from rlaudit.engines.models.model_types import DATA, model_types, transformers_for
from rlaudit.errors import NotFinished

OLD, NEW = (release.version for release in TRANSFORMERS)


@pytest.mark.parametrize("model_type", ["llama", "qwen2", "qwen3_moe", "gpt_oss", "deepseek_v3"])
def test_what_transformers_4_knows_is_scored_with_it(model_type: str) -> None:
    assert transformers_for("m", {"model_type": model_type, "rope_theta": 1e6}, False) == OLD


@pytest.mark.parametrize(
    "model_type",
    ["qwen3_5", "qwen3_5_moe", "gemma4", "glm_moe_dsa", "deepseek_v32", "minimax_m2", "nemotron_h", "mistral4"],
)
def test_what_only_transformers_5_knows_is_scored_with_that(model_type: str) -> None:
    assert transformers_for("m", {"model_type": model_type}, False) == NEW


@pytest.mark.parametrize("part", ["top", "text_config"])
def test_frequencies_that_only_transformers_5_reads_ask_for_it_whatever_the_type(part: str) -> None:
    written_by_5 = {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}
    inside = written_by_5 if part == "top" else {part: written_by_5}
    assert transformers_for("m", {"model_type": "llama", **inside}, False) == NEW
    both = {**written_by_5, "rope_theta": 5e5}
    assert transformers_for("m", {"model_type": "llama", **(both if part == "top" else {part: both})}, False) == OLD


def test_a_configuration_that_states_nothing_gets_the_usual() -> None:
    assert transformers_for("m", {}, False) == OLD


def test_a_type_that_nobody_knows_is_refused_by_name_with_the_ways_out() -> None:
    with pytest.raises(NotFinished, match=r"org/new: no transformers .*4\.57\.6 and 5\..* 'brand_new'") as raised:
        transformers_for("org/new", {"model_type": "brand_new"}, False)
    assert raised.value.hint is not None
    assert "--trainer-python" in raised.value.hint
    assert transformers_for("org/new", {"model_type": "brand_new"}, True) == OLD


def test_the_data_hold_the_releases_the_trainer_may_be_and_are_written_as_the_tool_writes_them() -> None:
    held = json.loads(DATA.read_text(encoding="utf-8"))
    assert list(held) == [OLD, NEW]
    assert written(held) == DATA.read_text(encoding="utf-8")
    assert len(model_types(OLD)) > 400
    assert len(model_types(NEW)) > 700


def wheel(folder: Path, **files: str) -> Path:
    path = folder / "transformers-9-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"transformers/models/auto/{name}.py", text)
    return path


def test_types_are_read_from_both_generations_of_wheels(tmp_path: Path) -> None:
    four = 'CONFIG_MAPPING_NAMES = OrderedDict[str, str]([("a", "AConfig")])\nOTHER = [("x", "X")]\n'
    assert types_in(wheel(tmp_path, configuration_auto=four)) == {"a"}
    five = 'CONFIG_MAPPING_NAMES = OrderedDict([("b", "BConfig")])\n'
    added = 'CONFIG_MAPPING_NAMES = OrderedDict(**{"b-2": "BConfig"}, **CONFIG_MAPPING_NAMES)\n'
    assert types_in(wheel(tmp_path, configuration_auto=added, auto_mappings=five)) == {"b", "b-2"}
    with pytest.raises(ValueError, match="no CONFIG_MAPPING_NAMES"):
        types_in(wheel(tmp_path, configuration_auto="NAMES = {}\n"))
