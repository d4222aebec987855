"""A config that a script writes itself is inspected at its lines in the script."""

from packaging.version import Version
from toy_dialect import PLAIN, Desk

from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Unknown
from rlaudit.inspection.read_configs import documents_of, known_dialects, read_all


def test_a_trainers_config_in_a_here_document_is_inspected_where_it_stands(desk: Desk) -> None:
    text = f"#!/bin/bash\n# vllm\ncat > toy.yaml <<EOF\nname: x\n{PLAIN}EOF\nexport VLLM_USE_V1=0\npython train.py\n"
    desk.file("run.sh", text)
    assert desk.rules("run.sh") == ["6 toy-raw", "9 toy-warm"]
    desk.inspect("run.sh")
    assert "the options of the command that reads this here-document" in desk.out
    assert "VLLM_USE_V1" in desk.out or "V0" in desk.out


MANIFEST = """#!/bin/bash
export VLLM_USE_V1=0
TP=${TP:-2}
ENGINE=vllm
OUT=/data/out
cat <<EOF | kubectl -n rl apply -f -
kind: Job
spec:
  containers:
  - name: submit
    command:
    - bash
    - -lc
    - |
      set -e
      TP=${TP:-8}
      python3 -m verl.trainer.main_ppo \\
        actor_rollout_ref.rollout.name="${ENGINE}" \\
        actor_rollout_ref.rollout.tensor_model_parallel_size=${TP} \\
        actor_rollout_ref.rollout.seed="\\$SEED" \\
        +actor_rollout_ref.rollout.engine_kwargs.vllm.swap_space=4
EOF
"""


def applied(text: str) -> list[RolloutConfig]:
    """What the manifests of a script set up under the newer version."""
    documents, bugs = documents_of(Source("submit.sh", text), known_dialects())
    assert not bugs
    return [pair.after for pair in read_all(documents, (Version("0.8.5"), Version("0.18.1"))).pairs]


def test_a_trainer_in_a_manifest_for_a_cluster_is_read_with_the_values_of_the_script_around_it() -> None:
    (config,) = applied(MANIFEST)
    ranks = config.engine["tensor_parallel_size"]
    assert ranks.value == 2 and ranks.place is not None and ranks.place.line == 19
    assert config.engine["swap_space"].value == 4 and "VLLM_USE_V1" not in config.environment
    assert any("TP is taken at its default 2" in one for one in config.not_seen)


def test_a_server_in_a_manifest_for_a_cluster_is_read() -> None:
    text = (
        "#!/bin/bash\nSEQS=64\nkubectl apply -f - <<EOF\nkind: Deployment\nspec:\n  containers:\n  - name: server\n"
        "    command: [sh, -c]\n    args:\n    - |\n"
        "      vllm serve org/m --max-num-seqs ${SEQS} --seed $SEED\nEOF\n"
    )
    (config,) = applied(text)
    assert config.engine["max_num_seqs"].value == 64 and isinstance(config.engine["seed"].value, Unknown)
    assert not applied(text.replace("kubectl apply -f - <<EOF", "cat <<EOF"))
