import pytest

from rlaudit.configs.here_documents import here_documents
from rlaudit.configs.source import Source
from rlaudit.unknown import Unknown

SCRIPT = """#!/bin/bash
N=${N:-4}
cat > "$OUT" <<EOF
rollout:
  n: $N
  seed: $SEED
  length: \\${rollout.n}
vllm: {a: [x, $(date)]}
EOF
export VLLM_USE_V1=0
python train.py --config "$OUT"
"""


def test_a_yaml_file_that_a_script_writes_has_the_scripts_values_and_places() -> None:
    (document,) = here_documents(Source("run.sh", SCRIPT))
    (root,) = document.yaml
    count = root.get("rollout", "n")
    assert count is not None and (count.value, root.get("rollout", "length").plain()) == (4, 4)  # type: ignore[union-attr]
    seed, inner = root.get("rollout", "seed"), root.get("vllm", "a")
    assert seed is not None and isinstance(seed.value, Unknown) and "$SEED is not told" in seed.value.reason
    assert seed.place.line == 6 and SCRIPT[seed.place.start : seed.place.end] == "$SEED"
    assert inner is not None and isinstance(inner.value[1].value, Unknown)
    assert document.untold[0] == "N is taken at its default 4" and document.variables["VLLM_USE_V1"].value == "0"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("run.sh", SCRIPT.replace(' > "$OUT"', "")),
        ("run.sh", SCRIPT.replace("rollout:", "rollout: [")),
        ("run.sh", SCRIPT.replace("#!/bin/bash", "echo 'vllm")),
        ("run.txt", SCRIPT.replace("#!/bin/bash", "")),
        ("run.sh", "cat > rollout.txt <<EOF\nsome words, not a mapping\nEOF\n"),
    ],
)
def test_what_is_no_yaml_file_gives_no_document(path: str, text: str) -> None:
    assert here_documents(Source(path, text)) == ()
