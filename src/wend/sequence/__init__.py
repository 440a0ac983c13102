"""`wend.sequence`: recurrences with taps, delays, and batches of sequences of different lengths."""

from wend.sequence.delays import future_value as future_value
from wend.sequence.delays import past_value as past_value
from wend.sequence.recurrence import recurrence as recurrence
from wend.sequence.recurrence import until as until
