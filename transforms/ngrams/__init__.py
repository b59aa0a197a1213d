"""N-grams: the index over benchmark items, and the search for them in every text."""
