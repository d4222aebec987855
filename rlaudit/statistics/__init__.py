"""What may be concluded from clusters of tokens: resampling, intervals, scores, and their guards."""
