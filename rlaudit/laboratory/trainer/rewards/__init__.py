"""Rewards of a completion, one file each; loaded by path in the trainer's interpreter.

To add one, add a file with `reward(token_ids, text, answer)`, in 0 .. 1. text: the completion decoded, None if the
model has no tokenizer. answer: of the prompt.
"""
