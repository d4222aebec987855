"""Three updates of a real engine's weights, the last with a layer that takes nothing on its last rank.

    sharded_weights.py MODEL OUT RANKS LAYER

Runs in the engine's interpreter, with the recorder on PYTHONPATH.
"""

import contextlib
import sys
from pathlib import Path

with contextlib.suppress(Exception):
    # Packed weights take no load_weights. Workers import this file before they load theirs.
    import vllm._custom_ops as operations

    operations._supports_onednn = False


class Extension:
    """A base of the worker's class."""

    def update(self, path, layer, rank):
        """Load a checkpoint; on one rank a layer's weights take nothing."""
        from safetensors.torch import load_file

        model = self.model_runner.model
        for name, parameter in model.named_parameters():
            if self.rank == rank and layer in name:
                # vLLM's own parameters keep it under another name, behind a property.
                for loader in ("weight_loader", "_weight_loader"):
                    if loader in parameter.__dict__:
                        parameter.__dict__[loader] = lambda *_, **__: True
        model.load_weights(iter(load_file(path).items()))


def main():
    import torch
    from safetensors.torch import load_file, save_file
    from vllm import LLM, SamplingParams

    model, out, ranks, layer = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    llm = LLM(
        model=model,
        dtype="float32",
        enforce_eager=True,
        max_model_len=64,
        skip_tokenizer_init=True,
        tensor_parallel_size=ranks,
        distributed_executor_backend="mp" if ranks > 1 else "uni",
        worker_extension_cls="sharded_weights.Extension",
    )
    parameters = SamplingParams(max_tokens=2, logprobs=0, detokenize=False)
    weights = load_file(str(Path(model) / "model.safetensors"))
    for step in range(4):
        if step:
            weights = {name: tensor + 1e-3 * torch.randn_like(tensor) for name, tensor in weights.items()}
            path = str(out / f"step-{step}.safetensors")
            save_file(weights, path)
            llm.collective_rpc("update", args=(path, layer, ranks - 1 if step == 3 else -1))
        llm.generate([{"prompt_token_ids": [1, 5, 6, 7]}], parameters, use_tqdm=False)


if __name__ == "__main__":
    main()
