import re
from pathlib import Path

import pytest

from reflexio.language import words
from reflexio.language.words import CueFile
from reflexio.learners.local import sentences


@pytest.mark.parametrize(("cues", "source"), [(words.CUES, words.__file__), (sentences.CUES, sentences.__file__)])
def test_the_rules_use_every_cue_of_their_file_and_no_other(cues: CueFile, source: str) -> None:
    code = "".join(file.read_text() for file in Path(source).parent.glob("*.py"))
    assert set(re.findall(r'CUES\["(\w+)"\]', code)) == {*cues.data["phrases"], *cues.data["regexes"]}
    # In `_silent_words` the names of lists stand without `CUES`.
    assert all(f'"{name}"' in code for name in cues.data["lists"])
    assert set(re.findall(r'CUES\.lists\["(\w+)"\]', code)) <= set(cues.data["lists"])


@pytest.mark.parametrize("cues", [words.CUES, sentences.CUES])
def test_every_cue_compiles(cues: CueFile) -> None:
    assert all(cues[name].pattern for name in (*cues.data["phrases"], *cues.data["regexes"]))
