"""Planning of a rebalance: measures files, predicts the result, or refuses the job."""
