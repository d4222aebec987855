"""What is planted where samples of one prompt, their ids and one logprob a token are all there is: one file each."""
