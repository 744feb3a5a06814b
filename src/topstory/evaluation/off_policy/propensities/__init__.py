"""The probabilities with which a log showed its articles, where it did not record them."""
