"""A file without a config is named if it runs rollouts on another engine, or has words of vLLM or a framework."""

from rlaudit.inspection.without_config import (
    MOST_OF_A_WORD,
    Mention,
    about_mentions,
)


def test_many_files_are_counted_by_folder_after_the_first() -> None:
    found = [Mention(f"{'a' if at < MOST_OF_A_WORD else 'b'}/{at}.py", "vllm", 1) for at in range(MOST_OF_A_WORD + 2)]
    (sentence,) = about_mentions(found)
    assert ", 2 more in b: mention vllm, and no rollout config is read there" in sentence
