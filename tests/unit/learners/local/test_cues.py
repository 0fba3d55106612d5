import re
from pathlib import Path

import pytest

from reflexio.language import contradiction, standing, words
from reflexio.language.words import CueFile
from reflexio.learners.local import corrections, sentences, spelling

LOCAL_LEARNER = sorted(Path(sentences.__file__).parent.glob("*.py"))


@pytest.mark.parametrize(
    ("cues", "sources"),
    [
        (words.CUES, [Path(words.__file__), Path(contradiction.__file__)]),
        (standing.CUES, [Path(standing.__file__)]),
        (sentences.CUES, LOCAL_LEARNER),
    ],
)
def test_the_rules_use_every_cue_of_their_file_and_no_other(cues: CueFile, sources: list[Path]) -> None:
    code = "".join(file.read_text() for file in sources)
    assert set(re.findall(r'CUES\["(\w+)"\]', code)) == {*cues.data["phrases"], *cues.data.get("regexes", ())}
    # In `_silent_words` the names of lists stand without `CUES`.
    assert all(f'"{name}"' in code for name in cues.data.get("lists", ()))
    assert set(re.findall(r'CUES\.lists\["(\w+)"\]', code)) <= set(cues.data.get("lists", ()))


@pytest.mark.parametrize("cues", [words.CUES, standing.CUES, sentences.CUES, corrections.FORMS, spelling.TYPED])
def test_every_cue_compiles(cues: CueFile) -> None:
    assert all(cues[name].pattern for name in (*cues.data.get("phrases", ()), *cues.data.get("regexes", ())))
