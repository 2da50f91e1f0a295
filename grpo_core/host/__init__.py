"""The loop that trains a run: it takes commands and emits finished updates and reports. It knows neither windows nor
threads.
"""
