"""The prompts: some whose next token is open, some whose next token stands before.

Any text will do. Which of them are of use with this model shows when they are asked.
"""

# Many words may follow, several of them likely.
OPEN = (
    "My favourite thing about the city is the",
    "She opened the box and found a",
    "In the morning they went to the",
    "The best way to learn something new is to",
    "On the table there was a",
    "He wanted to know why the",
    "It was a cold day in",
    "The name of the dog was",
)
# The last word is likely to come again.
REPEATING = (
    "go go go go go go go go go go",
    "ha ha ha ha ha ha ha ha ha ha",
    "very very very very very very very very",
    "one two one two one two one two one two",
    "the the the the the the the the the the",
    "yes yes yes yes yes yes yes yes yes yes",
)
