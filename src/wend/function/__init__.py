"""Floor 10: functions that are traced once per signature, and their derivatives."""
