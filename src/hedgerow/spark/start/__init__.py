"""How does a working Spark session start?

In: the environment of the user. Out: a session with a JVM (`java`), the jars of Delta (`delta_jars`) and its settings
(`session`), and progress bars (`progress`). Imports `core.errors` and `core.progress`.
"""
