"""`lake demo`: the whole path on made-up input with planted errors, and the comparison of what was found with them."""
