"""What a caller is given. V0 makes it of a sequence group, which holds the tokens itself."""

import dataclasses

from vllm import IS_V1


@dataclasses.dataclass
class CompletionOutput:
    index: int
    token_ids: list
    logprobs: "list | None"
    finish_reason: "str | None"


@dataclasses.dataclass
class RequestOutput:
    request_id: str
    prompt_token_ids: list
    outputs: list
    finished: bool

    if not IS_V1:

        @classmethod
        def from_seq_group(cls, seq_group, use_cache, seq_id_to_seq_group):
            parent = seq_id_to_seq_group.get(seq_group.request_id)
            if parent is not None:
                # n > 1: the group of all samples, in a call of this method's own, once all have ended.
                if seq_group.is_finished():
                    parent.to_be_finished.discard(seq_group.request_id)
                if parent.to_be_finished:
                    return None
                return cls.from_seq_group(parent, use_cache, {})
            outputs = []
            for index, sequence in enumerate(seq_group.seqs):
                asked = seq_group.sampling_params.logprobs is not None
                logprobs = [
                    held[token].logprob for held, token in zip(sequence.output_logprobs, sequence.ids, strict=True)
                ]
                finish = {"FINISHED_STOPPED": "stop", "FINISHED_LENGTH_CAPPED": "length"}.get(sequence.status.name)
                outputs.append(CompletionOutput(index, list(sequence.ids), logprobs if asked else None, finish))
            prompt = seq_group.seqs[0].prompt_token_ids
            return cls(seq_group.request_id, list(prompt), outputs, seq_group.is_finished())
