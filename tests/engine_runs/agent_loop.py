"""An agent of several turns with a tool on a real engine, whose history is passed on in one of several ways.

    agent_loop.py MODEL MODE CONVERSATIONS TURNS EVERY OUT

MODE says what becomes of the history before every EVERY-th later turn: "ids" passes on what was sent and sampled,
"messages" decodes the answers and renders all messages by the model's template, "reasoning" leaves out the first half
of an answer, "doubled" puts an end token once more behind it, "lost" leaves it out. The trainer scores each
conversation as it was sampled, in one row. Runs in the engine's own interpreter. OUT gets the turns that this program
itself finds to begin with other tokens than were sent and sampled.
"""

import json
import sys
from pathlib import Path

import agent_loss
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from vllm import LLM, SamplingParams

QUESTIONS = [
    "What is 17 + 25?", "Name three rivers.", "How do bees make honey?", "Is 91 a prime number?",
    "Write a line about rain.", "What do cats eat?", "Explain gravity.", "What is the capital of France?",
]  # fmt: skip


def tool_result(conversation, turn):
    return f"The tool says: result {conversation * 31 + turn * 7}.\n  Go on -> in more detail, please!"


def main():
    model, mode, conversations, turns, every, out = sys.argv[1:]
    conversations, turns, every = int(conversations), int(turns), int(every)
    tokenizer = AutoTokenizer.from_pretrained(model)
    end = tokenizer.eos_token_id
    llm = LLM(
        model=model, dtype="float32", max_model_len=2048, seed=0, enforce_eager=True,
        **({"logprobs_mode": "processed_logprobs"}),
    )  # fmt: skip
    messages = [[{"role": "user", "content": QUESTIONS[n % len(QUESTIONS)]}] for n in range(conversations)]
    sent = [_rendered(tokenizer, spoken) for spoken in messages]
    # What the trainer takes for each conversation: sampled ids, and the prompts between them, as passed on.
    rows, changed = [list(ids) for ids in sent], []
    for turn in range(turns):
        parameters = SamplingParams(temperature=1.0, max_tokens=24, logprobs=0, seed=turn)
        outputs = llm.generate([{"prompt_token_ids": ids} for ids in sent], parameters, use_tqdm=False)
        for number, output in enumerate(outputs):
            answer = list(output.outputs[0].token_ids)
            whole = [*sent[number], *answer]
            messages[number].append(
                {"role": "assistant", "content": tokenizer.decode(answer, skip_special_tokens=True)}
            )
            messages[number].append({"role": "user", "content": tool_result(number, turn)})
            between = _between(tokenizer, tool_result(number, turn), answer[-1] == end)
            rows[number] += answer
            if turn + 1 == turns:
                continue
            passed_on = [*whole, *between]
            if (number + turn) % every == 0:
                passed_on = _changed(tokenizer, mode, sent[number], answer, messages[number], passed_on, end)
            if passed_on[: len(whole)] != whole or (mode == "doubled" and passed_on != [*whole, *between]):
                changed.append([number, turn + 1])
            rows[number] += between
            sent[number] = passed_on
    policy = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    # With gradients, as a policy in training.
    for row in rows:
        agent_loss.token_logprobs(policy, torch.tensor([row]), len(row) - 1)
    Path(out).write_text(json.dumps({"changed": changed, "later": conversations * (turns - 1)}), encoding="utf-8")


def _rendered(tokenizer, messages):
    return list(
        tokenizer.encode(
            tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True),
            add_special_tokens=False,
        )
    )


def _between(tokenizer, result, has_end):
    """Return what the template puts between an answer and the next one."""
    text = f"\n<|im_start|>user\n{result}<|im_end|>\n<|im_start|>assistant\n"
    return tokenizer.encode(text if has_end else f"<|im_end|>{text}", add_special_tokens=False)


def _changed(tokenizer, mode, sent, answer, messages, passed_on, end):
    whole = [*sent, *answer]
    between = passed_on[len(whole) :]
    if mode == "messages":
        return _rendered(tokenizer, messages)
    if mode == "reasoning":
        return [*sent, *answer[len(answer) // 2 :], *between]
    if mode == "doubled":
        return [*whole, end, *between] if answer[-1] == end else passed_on
    if mode == "lost":
        return [*whole[:-1], *between] if answer[-1] == end else passed_on
    return passed_on


if __name__ == "__main__":
    main()
