"""The passes of the compiler: functions from Graph to Graph; `pipeline.py` lists them in order."""
