"""The engine class of V1; its module tells the generation."""


class LLMEngine:
    """Holds the loaded configuration."""

    def __init__(self, vllm_config):
        self.vllm_config = vllm_config
