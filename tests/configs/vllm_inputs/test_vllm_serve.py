from reading import read_one

from rlaudit.configs.readers.serve import DIALECT
from rlaudit.settings.rollout_config import Origin


def test_a_value_has_its_place_and_the_words_that_are_written_there() -> None:
    text = 'ARGS=(\n  --max-model-len 8k\n)\nvllm serve m "${ARGS[@]}"\n'
    setting = read_one(DIALECT, text, "0.18.1", "run.sh").engine["max_model_len"]
    assert (setting.value, setting.written, setting.origin) == (8000, "8k", Origin.FILE)
    assert setting.place is not None
    assert (setting.place.line, text[setting.place.start : setting.place.end]) == (2, "8k")
