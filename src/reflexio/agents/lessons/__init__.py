"""Where lessons are kept between runs: the `LessonStore` protocol, lessons in any vector store (`store.py`), and
lessons on a Reflexio server (`server.py`). The lessons of a run in progress are in `loop.py`.
"""
