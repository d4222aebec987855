"""Computes the logits of a vLLM worker in float32, for releases whose engine has no such setting.

Loaded into every worker by `worker_extension_cls`, which mixes the class into the worker of V0 and V1
(vllm/worker/worker_base.py in 0.8.5, vllm/v1/worker/worker_base.py in 0.18.1). Both engines apply the head outside the
compiled and captured part of the model, so replacing it after loading changes every decoded token.

Hidden states and head weights are cast one slice of the vocabulary at a time, and no cast is kept: a float32 copy of
the head would cost memory and be stale after the first in-flight weight update.

Python 3.9 syntax; imports only what a vLLM environment holds.
"""

from rlaudit_loaded_engine import LoadedEngine

VOCABULARY_SLICE = 16384


class Fp32Head(LoadedEngine):
    """Methods that `collective_rpc` reaches in each worker."""

    def rlaudit_install_fp32_head(self):
        """Replace the head. Return None, or the reason why this model's head is not supported."""
        refusal = self._rlaudit_refusal()
        if refusal is not None:
            return refusal
        for processor in self._rlaudit_logits_processors():
            processor._get_logits = _Float32Logits(processor)
        return None

    def rlaudit_fp32_head_calls(self):
        """Return how many times float32 logits were computed since the head was replaced."""
        return sum(processor._get_logits.calls for processor in self._rlaudit_logits_processors())

    def _rlaudit_logits_processors(self):
        from vllm.model_executor.layers.logits_processor import LogitsProcessor

        return [module for module in self.model_runner.model.modules() if isinstance(module, LogitsProcessor)]

    def _rlaudit_refusal(self):
        workers = self.vllm_config.parallel_config.tensor_parallel_size
        if workers != 1:
            return (
                "the float32 head is put in for one worker only; here the vocabulary is split over %d "
                "(tensor_parallel_size)" % workers
            )
        processors = self._rlaudit_logits_processors()
        if not processors:
            return "the model %s has no LogitsProcessor to replace" % type(self.model_runner.model).__name__
        if self.vllm_config.lora_config is not None:
            return "with LoRA another layer computes the head"
        if any(processor.logits_as_input for processor in processors):
            return "the model computes its logits before the head"
        head = getattr(self.model_runner.model, "lm_head", None)
        method = type(getattr(head, "quant_method", None)).__name__
        if head is not None and method not in ("UnquantizedEmbeddingMethod", "UnquantizedLinearMethod"):
            return "the head is quantized (%s)" % method
        return None


class _Float32Logits:
    """`LogitsProcessor._get_logits` in float32: applies the head, then removes the padding of the vocabulary."""

    def __init__(self, processor):
        self._org_vocab_size = processor.org_vocab_size
        self.calls = 0

    def __call__(self, hidden_states, lm_head, embedding_bias=None):
        import torch

        self.calls += 1
        hidden = hidden_states.float()
        weight = lm_head.weight
        logits = torch.cat(
            [
                hidden @ weight[start : start + VOCABULARY_SLICE].float().T
                for start in range(0, weight.shape[0], VOCABULARY_SLICE)
            ],
            dim=-1,
        )
        if embedding_bias is not None:
            logits += embedding_bias.float()
        return logits[..., : self._org_vocab_size]
