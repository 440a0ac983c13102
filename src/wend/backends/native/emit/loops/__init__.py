"""The loops of a loop nest: index maps, elements, gathers, concatenation, parallel loops."""
