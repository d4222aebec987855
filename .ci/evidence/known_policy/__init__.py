"""Does `compare` name what is wrong with a log? A second world: rollouts of a policy with known probabilities."""
