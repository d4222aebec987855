"""A config or script that a script writes itself is named, and not read."""

import pytest
from packaging.version import Version

from rlaudit.configs.source import Source
from rlaudit.inspection.read_configs import known_dialects, read_configs, recognise


@pytest.mark.parametrize("opening", ['cat > "run.yaml" <<EOF', "cat <<EOF > run.yaml"])
def test_a_config_that_a_script_writes_is_named_with_its_line(opening: str) -> None:
    source = Source("run.sh", f"{opening}\nactor_rollout_ref:\n  rollout: {{name: vllm}}\nEOF\nvllm serve m\n")
    recognised, _ = recognise(source, known_dialects())
    configs = read_configs(source, recognised, (Version("0.8.5"), Version("0.18.1")))
    assert len(configs.pairs) == 1
    assert "run.sh:1: run.yaml, which the script writes itself, is not read: inspect that file" in configs.not_seen


def test_a_script_that_a_script_writes_is_named_with_its_line() -> None:
    source = Source("run.sh", "cat > job.slurm <<EOF\nvllm serve n\nEOF\nvllm serve m\n")
    recognised, _ = recognise(source, known_dialects())
    configs = read_configs(source, recognised, (Version("0.8.5"), Version("0.18.1")))
    assert len(configs.pairs) == 1
    assert "run.sh:1: job.slurm, which the script writes itself, is not read: inspect that file" in configs.not_seen
