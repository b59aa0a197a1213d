"""Landing: files of any known format become rows of the raw tables, every byte and record accounted for."""
