"""What a rebalance would do: measured, sampled, predicted, refused."""
