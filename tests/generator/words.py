from __future__ import annotations

import random

_WORDS = (  # noqa: SIM905 - a hundred quoted words read worse
    "harbour gauge moon spring neap water level table station forecast reading sensor buoy window parser cache index "
    "column record total chart margin offset phase cycle error retry branch merge commit review module function test "
    "fixture value number string option folder request answer header status result counter limit buffer signal event "
    "the a of in on for with before after when which this that each every no one two first last new old small large "
    "is was reads writes keeps drops adds moves returns fails passes waits starts ends checks finds shows says"
).split()

_CODE = (
    "def read_level(path):\n    return parse(path.read_text())\n",
    "for station in stations:\n    table.append(predict(station, day))\n",
    "assert heights == sorted(heights)\n",
    '{"station": "Brest", "height": 6.92, "unit": "m"}\n',
    "PASSED tests/test_tables.py::test_spring_tide\n",
    "  12  files changed, 340 insertions(+), 97 deletions(-)\n",
    "WARNING: gauge 14 has not reported for 3 h\n",
)


class Words:
    """Endless invented text and tool output, cut from one pool: cheap enough for a million records."""

    def __init__(self, rng: random.Random, pool_characters: int = 400_000) -> None:
        self._rng = rng
        sentences = [" ".join(rng.choices(_WORDS, k=rng.randrange(6, 18))).capitalize() + "." for _ in range(600)]
        prose: list[str] = []
        while sum(map(len, prose)) < pool_characters // 2:
            prose += rng.choices(sentences, k=200)
        self._prose = " ".join(prose)
        code: list[str] = []
        while sum(map(len, code)) < pool_characters:
            code += rng.choices(_CODE, k=100)
            code += [sentence + "\n" for sentence in rng.choices(sentences, k=40)]
        self._code = "".join(code)

    def text(self, characters: int) -> str:
        """About `characters` of prose."""
        start = self._rng.randrange(max(1, len(self._prose) - characters))
        return self._prose[start : start + max(1, characters)].strip() or "Yes."

    def output(self, characters: int) -> str:
        """About `characters` of what a tool prints."""
        start = self._rng.randrange(max(1, len(self._code) - characters))
        return self._code[start : start + max(1, characters)]
