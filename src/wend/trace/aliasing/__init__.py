"""May-alias facts: the arrays that the result of a branch or loop may be, and their referrers."""
