"""Where NeMo-RL's own source says what it does. Its defaults stand in the YAML that a config inherits."""

from rlaudit.configs.framework_source.questions import divides_by
from rlaudit.configs.framework_source.tell import FrameworkSource

SOURCE = FrameworkSource(
    package="nemo_rl",
    engine=("nemo_rl/models/generation/vllm/vllm_worker.py", "nemo_rl/models/generation/vllm.py"),
    facts={
        "divides_by_temperature": divides_by(
            "temperature", "nemo_rl/distributed/model_utils.py", "nemo_rl/models/policy/dtensor_policy_worker.py"
        )
    },
)
