"""Operations without an emitter, written with others that have one."""
