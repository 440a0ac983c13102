"""Operations on arrays that may be staged: dispatch, promotion, broadcasting."""
