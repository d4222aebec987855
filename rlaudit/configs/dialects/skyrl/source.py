"""Where SkyRL's own source says what it does."""

from rlaudit.configs.framework_source.tell import FrameworkSource

_CONFIG = "skyrl/train/config/config.py"
SOURCE = FrameworkSource(
    package="skyrl",
    engine=("skyrl/backends/skyrl_train/inference_servers/utils.py",),
    defaults=((_CONFIG, "InferenceEngineConfig"),),
)
