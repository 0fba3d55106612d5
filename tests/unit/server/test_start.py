from pathlib import Path

import pytest

from reflexio.errors import StorageCorrupt
from reflexio.server.run import serve
from reflexio.settings import Settings


def test_a_damaged_database_stops_the_start_with_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "reflexio.db").write_text("This is a letter, and no database at all. " * 50)
    with pytest.raises(StorageCorrupt, match="restore a backup"):
        serve(Settings(data=tmp_path, port=0))
