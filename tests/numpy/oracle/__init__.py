"""An oracle: random calls of every array function, compiled by wend and run by NumPy."""
