"""The run-time library: functions of machine code that modules share, compiled at first use."""
