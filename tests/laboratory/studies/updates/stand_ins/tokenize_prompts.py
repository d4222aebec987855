"""Token ids of a prompt: as many as the stand-in engine needs, the first of them its own."""


def run(job, channel):
    return {"prompt_token_ids": [[place, 1, 2, 3] for place, _ in enumerate(job["prompts"])]}
