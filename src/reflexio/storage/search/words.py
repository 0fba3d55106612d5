"""The name under which migration 0001 imports the full-text index. New code imports `reflexio.storage.fulltext`."""

from reflexio.storage.fulltext.index import FulltextIndex as Words

__all__ = ["Words"]
