"""Turns a GGUF file into an ordinary bf16 checkpoint that every engine and trainer reads. A worker script.

job
  gguf      the file
  output    folder for config.json, model.safetensors, tokenizer and generation_config.json; must not exist

The configuration is written for old and new readers at once: `torch_dtype` (transformers before 4.56) beside
`dtype`, and `rope_theta` (transformers 4) beside `rope_parameters` (transformers 5). Runs under transformers 4.51
to 5.x.
"""

import json
import os


def run(job, channel):
    """Dequantise the weights, cast them to bfloat16 and save them with their tokenizer."""
    import torch
    import transformers

    folder, name = os.path.split(job["gguf"])
    output = job["output"]
    channel.phase("load")
    # transformers renamed the argument (4.56), and its configuration's field with it.
    dtype_name = "dtype" if hasattr(transformers.PretrainedConfig(), "dtype") else "torch_dtype"
    # Cast after loading: dequantisation itself is done in float32.
    arguments = {"gguf_file": name, dtype_name: torch.float32}
    if hasattr(transformers, "GgufConfig"):
        # Otherwise transformers 5.17 and later keep the blocks of the file, which cannot be saved again.
        arguments["quantization_config"] = transformers.GgufConfig(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, **arguments)
    tokenizer = plain_tokenizer(transformers.AutoTokenizer.from_pretrained(folder, gguf_file=name), model.config)
    model = model.to(torch.bfloat16)

    channel.phase("save")
    setattr(model.config, dtype_name, torch.bfloat16)
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)
    write_for_old_and_new_readers(os.path.join(output, "config.json"), model.config)
    name_a_class_of_both(os.path.join(output, "tokenizer_config.json"))
    return {}


def plain_tokenizer(from_gguf, config):
    """Return the tokenizer as one tokenizer.json, without a class that wants a sentencepiece file.

    What transformers makes of the GGUF file differs from the model's own tokenizer in three ways, undone
    here: the end token (an instruct model ends with the token its configuration names), digits (SmolLM2
    splits numbers, its `tokenizer.ggml.pre` is "smollm"), and a start token put before every text.
    """
    from tokenizers import pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    backend = from_gguf.backend_tokenizer
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    backend.post_processor = processors.ByteLevel(trim_offsets=True)
    end = backend.id_to_token(config.eos_token_id)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=backend.id_to_token(config.bos_token_id),
        eos_token=end,
        pad_token=end,
        unk_token=backend.id_to_token(0),
        chat_template=from_gguf.chat_template,
        model_max_length=config.max_position_embeddings,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )


def write_for_old_and_new_readers(path, config):
    """Give the configuration the fields of both generations of transformers."""
    settings = read_json(path)
    settings["torch_dtype"] = settings["dtype"] = "bfloat16"
    theta = getattr(config, "rope_theta", None) or (settings.get("rope_parameters") or {}).get("rope_theta")
    settings["rope_theta"] = theta
    settings["rope_parameters"] = {"rope_type": "default", "rope_theta": theta}
    # transformers 4 calls scaling what transformers 5 calls parameters: none here.
    settings["rope_scaling"] = None
    write_json(path, settings)


def name_a_class_of_both(path):
    """Name the tokenizer's class as transformers 4 does: 5 reads that too, 4 does not know what 5 writes."""
    settings = read_json(path)
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    write_json(path, settings)


def read_json(path):
    """Read a JSON document."""
    with open(path, encoding="utf-8") as document:
        return json.load(document)


def write_json(path, settings):
    """Write a JSON document."""
    with open(path, "w", encoding="utf-8") as document:
        json.dump(settings, document, indent=2, sort_keys=True, ensure_ascii=False)
        document.write("\n")
