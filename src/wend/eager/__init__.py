"""Floor 6: operations on arrays that may be staged: dispatch, promotion, broadcasting."""
