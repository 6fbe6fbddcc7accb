"""The bundled sample session: a person and an agent build a small tide-table program.

`python -m tests.generator.sample FOLDER` writes it.

It is one session that lived through a client update: versions 2.1.20 and 2.1.217, three compactions (automatic, manual
and automatic), one microcompaction, a subagent, a picture, thinking with and without text, a diff, coloured test
output, failed calls, a rewind, an orphan result, and output that was too big and lies in tool-results/.
"""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

from tests.generator import sample_code as code
from tests.generator import sample_files
from tests.generator.author import Author, Step
from tests.generator.builder import SessionBuilder, Tool
from tests.generator.picture import image_block
from tests.generator.sample_texts import (
    BLUE,
    BOLD,
    BOTH_HARBOURS,
    GREEN,
    LE_CONQUET_DAY,
    LE_CONQUET_NOTE,
    LOG,
    NO_HARBOUR,
    PHASE_HEADER,
    PLAIN,
    RANGES,
    README_USE,
    SUMMARIES,
    YELLOW,
    failing_run,
    head,
    mismatch_run,
    passing_run,
    year_output,
)
from tests.generator.version import parse

NAME = "tide-tables"
CSV_TOKENS = 6_700
"""Columns of figures are dense: some 18 tokens a row, which no estimate by characters sees."""

MAY_4 = datetime(2026, 5, 4)


def build() -> SessionBuilder:
    """The whole session; the same bytes each time."""
    builder = SessionBuilder("2.1.20", seed=2026, system_tokens=57_000, start=1_777_622_400_000, name=NAME)
    author = Author(builder, sample_files.project())
    look_around(author)
    write_the_parser(author)
    ask_a_subagent(author)
    predict(author)
    after_the_first_compaction(author)
    update_the_client(author)
    command_line(author)
    print_pages(author)
    wrap_up(author)
    le_conquet(author)
    good_bye(author)
    return builder


def main(arguments: list[str]) -> int:
    """Write the sample into the folder named."""
    folder = Path(arguments[0]) if arguments else Path("resources/sample")
    path = build().write(folder)
    sys.stderr.write(f"{path}: {path.stat().st_size:,} bytes\n")
    return 0


# --- 1: look around, plan, write the parser ---------------------------------------------------------------------------


def look_around(a: Author) -> None:
    """The first prompt and a plan."""
    a.builder.file_history_snapshot()
    a.builder.prompt(
        "I would like a small program that prints tide tables for a few harbours. The harmonic constants are in data/, "
        "with reference heights to check against. Have a look and tell me how you would go about it."
    )
    listing = (
        f"total 24\n-rw-r--r-- 1 ada ada  412 May  1 08:52 README.md\ndrwxr-xr-x 3 ada ada 4096 May  1 08:52 {BLUE}"
        f"{BOLD}data{PLAIN}\n-rw-r--r-- 1 ada ada  131 May  1 08:52 pyproject.toml\n"
    )
    a.say(
        "I'll start with what is there.",
        a.bash("ls -l --color=always", listing, about="List the project"),
        a.read("README.md"),
        a.read("data/constants.toml"),
        thinking="The person wants a plan first, not code. Three quick looks in parallel: the listing, the README and "
        "the constants. The reference data may be large, so only list it for now.",
        interleave=True,
    )
    a.say(
        "",
        a.glob("data/reference/*.csv", sorted(name for name in a.files if name.endswith(".csv"))),
        a.bash("head -3 data/reference/brest-2026-01.csv", head(a, "data/reference/brest-2026-01.csv", 3)),
    )
    a.say(
        "Here is how I would build it:\n\n"
        "1. **Constants**: read `data/constants.toml` into small frozen dataclasses; refuse a constituent whose speed "
        "is not known, with its name.\n"
        "2. **Prediction**: the height at a time is the mean level plus one cosine per constituent. High and low "
        "water are where the slope changes sign.\n"
        "3. **Check**: compare with the reference of Brest, all twelve months, within 10 cm.\n"
        "4. **Command line**: `python -m tides Brest 2026-05-01`.\n"
        "5. **A page a month**, to print.\n\n"
        "The heights are UTC; I would keep it that way inside and convert only when printing. Shall I start?",
        a.todo(
            ("Read the constants", "pending"),
            ("Predict heights", "pending"),
            ("Check against the reference", "pending"),
            ("Command line", "pending"),
            ("Monthly page", "pending"),
        ),
        thinking="Two harbours have reference data, three have constants. Nodal corrections are out of scope for a "
        "year; 10 cm should be within reach without them. Time zones are the classic trap: the README says UTC.",
    )
    a.say("The list above is the order I would work in.")


def write_the_parser(a: Author) -> None:
    """Constants with a test that fails first."""
    a.builder.prompt("Good plan, go ahead with the constants. A test for the unknown constituent first, please.")
    a.say("The test first.", a.write("tests/test_constants.py", code.TEST_CONSTANTS_PY))
    a.say("", a.write("tides/__init__.py", ""), a.write("tides/constants.py", code.CONSTANTS_PY))
    a.say(
        "Now let it fail for the right reason.",
        a.bash("python -m pytest -q --color=yes", failing_run(), about="Run the tests", error=1),
        thinking="KeyError instead of ValueError is what I expect: the property looks the speed up lazily.",
    )
    a.say(
        "As expected: the unknown name surfaces late, as a `KeyError`. I'll check it while loading.",
        a.edit(
            "tides/constants.py",
            "    for name, entry in tomllib.loads(path.read_text()).items():\n        parts = tuple(\n            "
            'Constituent(key, value["amplitude"], value["phase"])\n            for key, value in entry.items()\n'
            '            if key != "mean_level"\n        )\n',
            "    for name, entry in tomllib.loads(path.read_text()).items():\n        mean_level = "
            'entry.pop("mean_level")\n        unknown = sorted(set(entry) - set(SPEEDS))\n        if unknown:\n'
            "            raise ValueError(f\"{path}: {name}: no speed known for {', '.join(unknown)}\")\n"
            '        parts = tuple(Constituent(key, value["amplitude"], value["phase"]) for key, value in '
            "entry.items())\n",
        ),
    )
    a.say(
        "",
        a.edit("tides/constants.py", 'Harbour(name, entry["mean_level"], parts)', "Harbour(name, mean_level, parts)"),
    )
    a.say("", a.bash("python -m pytest -q --color=yes", passing_run(2, "0.04"), about="Run the tests"))
    a.say(
        "The constants load, and an unknown constituent is named together with its harbour:\n\n"
        "```\ndata/constants.toml: X: no speed known for Q9\n```",
        a.todo(
            ("Read the constants", "completed"),
            ("Predict heights", "in_progress"),
            ("Check against the reference", "pending"),
            ("Command line", "pending"),
            ("Monthly page", "pending"),
        ),
    )
    a.builder.turn_duration(74_512)


def ask_a_subagent(a: Author) -> None:
    """A subagent looks at the reference data so that the main thread need not."""
    a.builder.prompt(
        "Before you predict anything: find out how the reference files are laid out, and whether all months are "
        "complete. I don't fully trust that export."
    )
    task = (
        "Look at data/reference/*.csv of this project. Report the columns, the time step, the time zone if stated, "
        "and any month with missing or repeated rows. Do not change anything."
    )
    call = Tool("Task", {"description": "Survey reference data", "prompt": task, "subagent_type": "Explore"})
    response = a.say(
        "I'll let a subagent survey the files; they are long and only the findings matter.", Step(call, None)
    )
    (call_id,) = response.tools
    child = a.builder.subagent(call_id, task, kind="Explore", description="Survey reference data")
    counts = "".join(
        f"{a.files[name].count(chr(10)) - 1:5} {name}\n" for name in sorted(a.files) if name.endswith(".csv")
    )
    a.say(
        "Counting rows first.",
        a.bash("for f in data/reference/*.csv; do echo $(($(wc -l < $f) - 1)) $f; done", counts),
        builder=child,
    )
    a.say(
        "",
        a.bash("head -4 data/reference/saint-malo-2026-03.csv", head(a, "data/reference/saint-malo-2026-03.csv", 4)),
        a.bash("cut -d, -f1 data/reference/*.csv | sort | uniq -d | grep -v time_utc | head", ""),
        builder=child,
        thinking="Each harbour has its own series, so a time that stands twice across both harbours is normal; "
        "uniq -d over all files would show that. It printed nothing because of the grep on the header only? No: the "
        "head shows nothing, so I should check one harbour at a time.",
    )
    a.say("", a.bash("cut -d, -f1 data/reference/brest-*.csv | sort | uniq -d", "time_utc\n"), builder=child)
    a.builder.end_subagent(
        call_id,
        child,
        "All 24 files have the columns `time_utc,height_m`, one row every two hours, UTC by the column's name.\n\n"
        "- Every month is complete: 12 rows a day, 372 in a month of 31 days, 336 in February.\n"
        "- No repeated rows within a harbour.\n"
        "- Heights have two decimals; the lowest at Brest is above chart datum all year.",
    )
    a.say(
        "The export is sound: every month of both harbours is complete, one row every two hours, in UTC. I can check "
        "against all of it."
    )


# --- 2: predict, read much, and run out of room -----------------------------------------------------------------------


def predict(a: Author) -> None:
    """The prediction is an hour off; a picture shows it; reading all references fills the context."""
    b = a.builder
    b.prompt("Great. Now the prediction.")
    a.say("", a.write("tides/predict.py", code.PREDICT_PY), a.write("tests/test_predict.py", code.TEST_PREDICT_PY))
    a.say("", a.bash("python -m pytest -q --color=yes tests/test_predict.py", mismatch_run(), error=1))
    b.prompt(
        [
            {
                "type": "text",
                "text": "This is the almanac's curve for 20 March at Brest. Ours peaks an hour later, doesn't it?",
            },
            image_block(sample_files.almanac_chart()),
        ]
    )
    a.say(
        "Yes: the almanac's first high water is near 06:24, ours near 07:24. Before I touch the phases I want to see "
        "whether the offset is the same in every month. A constant hour means a time zone; one that grows means a "
        "wrong speed.",
        *(a.read(f"data/reference/brest-2026-{month:02}.csv", tokens=CSV_TOKENS) for month in (1, 2, 3)),
        thinking="An hour later at Brest smells like somebody added CET. Reading the months side by side tells a "
        "constant offset from a drift.",
        interleave=True,
    )
    for months in ((4, 5), (6, 7), (8, 9), (10, 11, 12)):
        a.say(
            "" if months[0] != 6 else "The same hour so far, spring and neap.",
            *(a.read(f"data/reference/brest-2026-{month:02}.csv", tokens=CSV_TOKENS) for month in months),
        )
    # The context stands near 135,000 tokens here, so the client clears old results before the next request.
    b.advance(90)
    b.microcompact(keep=4)
    b.prompt("So, which is it?")
    a.say(
        "A constant hour, all year, so the speeds are right. The fault is in how I read the reference: "
        "`datetime.fromisoformat` gives a naive time, and the test machine's zone slipped in.",
        a.grep("fromisoformat"),
        thinking="The column is UTC. height() takes naive UTC too. Where does the hour come from? The test compares "
        "both naive... unless EPOCH is local. I should look at the code again rather than guess.",
    )
    a.say(
        "",
        a.failed_edit("tides/predict.py", "EPOCH = datetime(2026, 1, 1, tzinfo=UTC)", "EPOCH = datetime(2026, 1, 1)"),
    )
    a.say("That line does not read as I remembered. Looking again.", a.read("tides/predict.py"))
    a.say(
        "The epoch is naive, as it should be. So it is the constants: the phases in the file are given for UTC+1. The "
        "header says Greenwich, but the published lag of M2 at Brest is 108.9° and the file has 137.9°: 29° apart, one "
        "hour of M2.",
        a.edit("data/constants.toml", "# Amplitude in metres, phase lag in degrees (Greenwich).", PHASE_HEADER),
        thinking="28.98 degrees an hour times one hour is 29 degrees. That is it. Do not change the figures: say in "
        "the file which zone they are for, and let the code subtract the hour.",
    )
    a.say(
        "",
        a.edit(
            "tides/predict.py",
            "EPOCH = datetime(2026, 1, 1)",
            "EPOCH = datetime(2025, 12, 31, 23)  # the phases are for UTC+1",
        ),
    )
    a.say("", a.bash("python -m pytest -q --color=yes", passing_run(14, "0.31"), about="Run the tests"))
    b.prompt("Nice. Does it hold for Saint-Malo as well? Please check every month yourself, I want to be sure.")
    for months in ((1, 2, 3), (4, 5, 6), (7, 8, 9), (10, 11)):
        a.say(
            {1: "Month by month, then.", 7: "Within 8 cm up to June."}.get(months[0], ""),
            *(a.read(f"data/reference/saint-malo-2026-{month:02}.csv", tokens=CSV_TOKENS) for month in months),
            interleave=months[0] == 4,
        )
    b.compact(SUMMARIES[0], trigger="auto")


def after_the_first_compaction(a: Author) -> None:
    """The work goes on from the summary."""
    b = a.builder
    a.say(
        "Continuing with the last month of Saint-Malo.",
        a.read("data/reference/saint-malo-2026-12.csv", tokens=CSV_TOKENS),
        thinking="The summary says eleven months are within 8 cm. December is left; then the test should cover both "
        "harbours, so that nobody has to read them again.",
    )
    a.say(
        "December agrees as well (7 cm). I'll make the test cover both harbours.",
        a.edit("tests/test_predict.py", '@pytest.mark.parametrize("month", range(1, 13))', BOTH_HARBOURS),
    )
    a.say(
        "",
        a.edit(
            "tests/test_predict.py",
            "heights_agree_with_the_reference_of_brest(month)",
            "heights_agree_with_the_reference(harbour, month)",
        ),
    )
    a.say("", a.bash("python -m pytest -q --color=yes", passing_run(26, "0.52"), about="Run the tests"))
    a.say(
        "Green, but too easily: the body may still say Brest, whatever the harbour.",
        a.read("tests/test_predict.py"),
        thinking="A test that cannot fail for the second harbour proves nothing about it.",
    )
    a.say(
        "It does. Both the constants and the file name must follow the harbour.",
        a.edit("tests/test_predict.py", '["Brest"]\n', "[harbour]\n"),
        a.edit("tests/test_predict.py", 'f"brest-2026-{month:02}.csv"', 'f"{harbour.lower()}-2026-{month:02}.csv"'),
    )
    a.say("", a.bash("python -m pytest -q --color=yes", passing_run(26, "0.58"), about="Run the tests"))
    a.say(
        "Both harbours agree with their reference in every month, within 8 cm. 26 tests pass.",
        a.todo(
            ("Read the constants", "completed"),
            ("Predict heights", "completed"),
            ("Check against the reference", "completed"),
            ("Command line", "pending"),
            ("Monthly page", "pending"),
        ),
    )
    b.turn_duration(228_040)


# --- 3: a new client version, the command line, a manual compaction ---------------------------------------------------


def update_the_client(a: Author) -> None:
    """Two days later, with a newer client and model; the prompt cache has run out."""
    b = a.builder
    b.advance(2 * 24 * 3600)
    b.version = parse("2.1.217")
    b.model = b.version.model
    b.hour_share = 0.8


def command_line(a: Author) -> None:
    """The command line, a wrong turn that is taken back, output too big for the context, a manual compaction."""
    b = a.builder
    b.prompt("Back again. The command line next: harbour and day in, high and low waters out.")
    b.attachment(
        "task_reminder",
        content=[],
        itemCount=0,
        sent="The task tools have not been used recently. Ignore if not needed.",
    )
    a.say("", a.write("tides/__main__.py", code.CLI_PY), hidden=1_900)
    a.say(
        "",
        a.bash("python -m tides Brest 2026-05-04", sample_files.day_output("brest", MAY_4)),
        a.bash("python -m tides Berst 2026-05-04", NO_HARBOUR, error=2),
    )
    before_the_wrong_turn = b.bookmark()
    b.prompt("Could it draw a chart in the terminal as well? Maybe with colours.")
    a.say(
        "It could: a column of blocks per hour, blue for water. I would put it behind `--chart` and keep the plain "
        "list the default.",
        a.write(
            "tides/chart.py",
            "BLOCKS = '▁▂▃▄▅▆▇█'\n\n\ndef row(levels):\n    return ''.join(BLOCKS[int(x)] for x in levels)\n",
        ),
        hidden=1_200,
    )
    # The person rewinds: the chart is given up and another prompt hangs on the same answer.
    b.rewind(before_the_wrong_turn)
    b.prompt("No charts, sorry, I changed my mind. Rather an option for local time: --zone Europe/Paris.")
    b.api_error(529, attempt=1)
    b.api_error(529, attempt=2)
    a.say(
        "`zoneinfo` does the work; inside everything stays UTC.",
        a.edit(
            "tides/__main__.py",
            '    parser.add_argument("day", type=datetime.fromisoformat)\n',
            '    parser.add_argument("day", type=datetime.fromisoformat)\n'
            '    parser.add_argument("--zone", type=ZoneInfo, default=ZoneInfo("UTC"), help="Europe/Paris")\n',
        ),
        a.edit(
            "tides/__main__.py",
            '        print(f"{moment:%H:%M}  {level:5.2f} m")\n',
            "        local = moment.replace(tzinfo=UTC).astimezone(args.zone)\n"
            '        print(f"{local:%H:%M}  {level:5.2f} m")\n',
        ),
        a.edit("tides/__main__.py", "from datetime import datetime\n", "from datetime import UTC, datetime\n"),
        interleave=True,
        thinking="Three small edits in one go. The import of ZoneInfo is a separate line; add it with the next one.",
    )
    a.say(
        "",
        a.edit(
            "tides/__main__.py",
            "from pathlib import Path\n",
            "from pathlib import Path\nfrom zoneinfo import ZoneInfo\n",
        ),
    )
    a.say(
        "",
        a.bash(
            "python -m tides Brest 2026-05-04 --zone Europe/Paris",
            sample_files.day_output("brest", MAY_4, zone_hours=2),
        ),
        hidden=2_300,
    )
    b.queue_operation("enqueue", "also show me a whole year, to see if anything looks odd")
    response = b.assistant(
        "Local time works, daylight saving included. Now the whole year, as you asked.",
        tools=[
            Tool(
                "Bash",
                {
                    "command": "for day in $(python -m tides.days 2026); do python -m tides Brest $day; done",
                    "description": "Print every tide of the year",
                },
            )
        ],
    )
    b.queue_operation("dequeue")
    b.persisted_result(response.tools[0], year_output())
    a.say(
        "1,410 high and low waters over the year, 6 h 00 to 6 h 30 apart: nothing odd. The highest is 7.40 m on 13 "
        "July, the lowest 0.88 m on 11 August.",
        hidden=1_600,
    )
    b.turn_duration(141_300)
    b.compact(
        SUMMARIES[1], trigger="manual", preserve=2, restore={a.path("tides/__main__.py"): a.files["tides/__main__.py"]}
    )


# --- 4: pages to print, a third compaction ----------------------------------------------------------------------------


def print_pages(a: Author) -> None:
    """The monthly page; much thinking that is paid for but not in the file."""
    b = a.builder
    b.prompt("Last part: one page a month that I can hang in the wheelhouse. Keep it plain text.")
    a.say("", a.write("tides/page.py", code.PAGE_PY), a.write("tests/test_page.py", code.TEST_PAGE_PY), hidden=7_400)
    a.say("", a.bash("python -m pytest -q --color=yes", passing_run(27, "0.66")), hidden=3_100)
    a.say(
        "How it looks for May:",
        a.bash("python -c 'from tides.page import *; ...' | head -8", sample_files.page_output("brest", "Brest", 5, 6)),
        hidden=5_200,
    )
    b.prompt("The columns wander when a day has only three tides. And please mark springs and neaps.")
    a.say("", a.read("tides/page.py"), a.read("data/constants.toml"), hidden=8_800)
    a.say(
        "Springs come when M2 and S2 are in phase, so the day's range is the honest measure: I mark a day whose range "
        "is the largest (or smallest) within a week on either side.",
        a.edit(
            "tides/page.py",
            '        cells = "   ".join(f"{moment:%H:%M} {level:5.2f}" for moment, level in points)\n',
            '        cells = "   ".join(f"{moment:%H:%M} {level:5.2f}" for moment, level in points).ljust(53)\n',
        ),
        hidden=6_000,
    )
    b.prompt("Take your time, and check the marks against the reference.")
    for months in ((1, 2, 3), (4, 5, 6), (7, 8, 9)):
        a.say(
            {1: "I check the ranges against the reference, to be sure that the marks fall on the right days."}.get(
                months[0], ""
            ),
            *(a.read(f"data/reference/brest-2026-{month:02}.csv", tokens=CSV_TOKENS) for month in months),
            hidden=3_900,
        )
    a.say(
        "The largest ranges fall two days after new and full moon, as they should at Brest.",
        a.edit("tides/page.py", "    days = monthrange(year, month)[1]\n", RANGES),
        hidden=1_400,
    )
    a.say(
        "",
        a.edit(
            "tides/page.py",
            '        lines.append(f"{day:2}   {cells}")\n',
            '        mark = "S" if day in springs else "n" if day in neaps else " "\n'
            '        lines.append(f"{day:2} {mark} {cells}".rstrip())\n',
        ),
        hidden=900,
    )
    a.say("", a.bash("python -m pytest -q --color=yes", passing_run(27, "0.71")), hidden=2_900)
    b.compact(SUMMARIES[2], trigger="auto", preserve=4, restore={a.path("tides/page.py"): a.files["tides/page.py"]})


def wrap_up(a: Author) -> None:
    """Documentation and a commit, from the summary of the third compaction."""
    b = a.builder
    a.say(
        "The page is done; the README should say so.",
        a.edit("README.md", "    python -m tides Brest 2026-05-01\n", README_USE),
        thinking="Two commands, one line each. No more than a sailor needs.",
    )
    a.say(
        "",
        a.bash(
            "git add -A && git commit -q -m 'Monthly pages with springs and neaps' && git log --oneline | head -3", LOG
        ),
    )
    b.turn_duration(61_900)


def le_conquet(a: Author) -> None:
    """What the newest epoch is about: a harbour without reference; much is read, some of it twice; one orphan."""
    b = a.builder
    b.prompt(
        [
            {
                "type": "text",
                "text": "One more thing. Le Conquet has no reference of its own, only this curve from the harbour "
                "board. How far may we be off there? It is twenty kilometres from Brest.",
            },
            image_block(sample_files.almanac_chart(200, 80)),
        ]
    )
    a.say(
        "I'll compare the shapes of the two harbours first, then look at what the board shows.",
        *(a.read(f"data/reference/brest-2026-{month:02}.csv", tokens=CSV_TOKENS) for month in (1, 2, 3)),
        thinking="The constituents differ by four degrees and four percent. If the shapes agree, the error at Le "
        "Conquet is about that of Brest plus what the constants themselves are off.",
        interleave=True,
    )
    a.say("", a.grep("Le Conquet"), a.read("tides/predict.py"))
    a.say(
        "The turning points are only found to six minutes. A parabola through the three samples is better and costs "
        "nothing.",
        a.edit(
            "tides/predict.py",
            "            found.append((moment, here))\n",
            "            bend = before - 2 * here + after\n"
            "            shift = (before - after) / (2 * bend) if bend else 0.0\n"
            "            found.append((moment + timedelta(minutes=6 * shift), here - (before - after) * shift / 4))\n",
        ),
    )
    a.say(
        "",
        a.bash("python -m pytest -q --color=yes", passing_run(27, "0.69"), about="Run the tests"),
        a.read("tides/predict.py"),
    )
    a.say("", *(a.read(f"data/reference/brest-2026-{month:02}.csv", tokens=CSV_TOKENS) for month in (3, 9)), hidden=900)
    a.say("", a.failed_edit("tides/page.py", "# Le Conquet: no reference", "# Le Conquet: about 15 cm"))
    # The client died while a command ran: its result was written after the restart, the call itself never was.
    b.result(
        b.ids.tool_use(),
        f"{YELLOW}interrupted{PLAIN}: python -m tides.page 'Le Conquet' 2026 5 was stopped by a restart\n",
        parent=b.leaf,
    )
    b.prompt("Sorry, my laptop went to sleep. Go on, please.")
    a.say(
        "No harm done. The equinox months once more, and the same at Saint-Malo.",
        *(a.read(f"data/reference/saint-malo-2026-{month:02}.csv", tokens=CSV_TOKENS) for month in (3, 9)),
        thinking="Largest ranges, largest errors: March and September bound the rest of the year.",
    )
    a.say(
        "",
        a.bash("python -m tides 'Le Conquet' 2026-03-20", LE_CONQUET_DAY),
        a.bash("python -m tides Brest 2026-03-20", sample_files.day_output("brest", datetime(2026, 3, 20))),
        a.read("README.md"),
    )
    a.say(
        "About 15 cm and five minutes: 8 cm as at Brest, and as much again for constants that nobody has checked "
        "there. The curve on the board agrees within the width of its line. I have said so in the README.",
        a.edit("README.md", "The constants are in", LE_CONQUET_NOTE + "The constants are in"),
    )


def good_bye(a: Author) -> None:
    """The linter, and a summary for the person."""
    b = a.builder
    b.prompt("Perfect. Can you run the linter once, and then we are done?")
    a.say("", a.bash("ruff check --color=always .", f"{GREEN}All checks passed!{PLAIN}\n"), hidden=240)
    a.say(
        "Everything is in place:\n\n"
        "| what | command |\n| --- | --- |\n"
        "| one day | `python -m tides Brest 2026-05-04 --zone Europe/Paris` |\n"
        "| a month to print | `python -m tides.page Brest 2026 5` |\n\n"
        "Predictions stay within 8 cm of the reference at Brest and Saint-Malo through 2026. At Le Conquet "
        "allow 15 cm. Fair winds!",
    )
    b.turn_duration(52_770)
    b.title("Tide tables for three harbours")
    b.last_prompt("Perfect. Can you run the linter once, and then we are done?")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
