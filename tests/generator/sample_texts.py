"""What the people and tools of the sample session say at length."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.generator import sample_files
from tests.generator.author import Author

GREEN, RED, YELLOW, BLUE, BOLD, PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[34m", "\x1b[1m", "\x1b[0m"

PHASE_HEADER = "# Amplitude in metres, phase lag in degrees, for times in UTC+1 (the harbour office's own clock)."

BOTH_HARBOURS = (
    '@pytest.mark.parametrize("harbour", ["Brest", "Saint-Malo"])\n@pytest.mark.parametrize("month", range(1, 13))'
)

RANGES = """\
    days = monthrange(year, month)[1]
    ranges = {day: daily_range(harbour, datetime(year, month, day)) for day in range(1, days + 1)}
    springs = {day for day in ranges if ranges[day] == max(ranges.get(day + n, 0.0) for n in range(-7, 8))}
    neaps = {day for day in ranges if ranges[day] == min(ranges.get(day + n, 99.0) for n in range(-7, 8))}
"""

README_USE = """\
    python -m tides Brest 2026-05-04 --zone Europe/Paris    # one day, local time
    python -m tides.page Brest 2026 5                       # a month to print; S springs, n neaps
"""

LE_CONQUET_DAY = "00:06   1.44 m\n06:18   6.45 m\n12:30   1.40 m\n18:42   6.39 m\n"
LE_CONQUET_NOTE = "At Le Conquet, which has no reference, allow 15 cm and five minutes.\n\n"
NO_HARBOUR = "tides: no harbour 'Berst'; known: Brest, Le Conquet, Saint-Malo\n"
LOG = (
    "4c1f0de Monthly pages with springs and neaps\n9b2ee71 Command line with local time\n71a80c4 Check both harbours\n"
)

SUMMARIES = (
    """\
Summary:
1. Primary Request and Intent:
   A small program that prints tide tables for a few harbours from harmonic constants in data/, checked against \
reference heights. The user asked for a plan first, then each part with tests, the test first where it matters.

2. Key Technical Concepts:
   - Height = mean level + sum of cosines (M2, S2, N2, K1, O1); speeds in degrees an hour.
   - Everything is UTC inside; the phases in data/constants.toml are for UTC+1.

3. Files and Code Sections:
   - tides/constants.py: Constituent, Harbour, load(); raises ValueError naming an unknown constituent.
   - tides/predict.py: height(), turning_points(); EPOCH is 23:00 the evening before because of the UTC+1 phases.
   - tests/test_constants.py, tests/test_predict.py (Brest, twelve months, within 10 cm).

4. Errors and fixes:
   - Predictions were an hour late: 29 degrees of M2. The constants' header was wrong, not the code.
   - An edit failed because the passage was not in the file; the file was read again first.

5. Problem Solving:
   The offset was constant over all months, so the speeds are right and a time zone was the cause.

6. All user messages:
   - "I would like a small program that prints tide tables for a few harbours..."
   - "Good plan, go ahead with the constants. A test for the unknown constituent first, please."
   - "Before you predict anything: find out how the reference files are laid out..."
   - "Great. Now the prediction."
   - "This is the almanac's curve for 20 March at Brest. Ours peaks an hour later, doesn't it?"
   - "So, which is it?"
   - "Nice. Does it hold for Saint-Malo as well? Please check every month yourself, I want to be sure."

7. Pending Tasks:
   - December of Saint-Malo, then the command line, then a monthly page.

8. Current Work:
   Comparing Saint-Malo month by month; January to November agree within 8 cm.

9. Optional Next Step:
   Read data/reference/saint-malo-2026-12.csv, as asked: "check every month yourself".""",
    """\
Summary:
1. Primary Request and Intent:
   Tide tables from harmonic constants: prediction and command line are done and checked; a monthly page is left.

2. Key Technical Concepts:
   - UTC inside, zoneinfo only when printing (--zone).

3. Files and Code Sections:
   - tides/__main__.py: harbour, day, --zone; exit code 2 with the known names for an unknown harbour.
   - tests/test_predict.py covers Brest and Saint-Malo, 24 months in all.

4. Errors and fixes:
   - Two overloaded responses of the service were repeated by the client.

5. Problem Solving:
   A whole year was printed and looked at: spacing between 6 h 00 and 6 h 30.

6. All user messages:
   - "Back again. The command line next: harbour and day in, high and low waters out."
   - "No charts, sorry, I changed my mind. Rather an option for local time: --zone Europe/Paris."
   - "also show me a whole year, to see if anything looks odd"

7. Pending Tasks:
   - A page a month, to print.

8. Current Work:
   The command line works; 26 tests pass.

9. Optional Next Step:
   The monthly page.

If you need specific details from before compaction, read the full transcript.""",
    """\
Summary:
1. Primary Request and Intent:
   The monthly page: plain text, aligned columns, springs and neaps marked.

2. Key Technical Concepts:
   - A spring is the day with the largest range within a week on either side, a neap the smallest.

3. Files and Code Sections:
   - tides/page.py: month_page(); marks S and n; cells padded to 53 characters.

4. Errors and fixes:
   - None in this part.

5. Problem Solving:
   Ranges were compared with the reference of Brest, January to September.

6. All user messages:
   - "Last part: one page a month that I can hang in the wheelhouse. Keep it plain text."
   - "The columns wander when a day has only three tides. And please mark springs and neaps."
   - "Take your time, and check the marks against the reference."

7. Pending Tasks:
   - README, commit.

8. Current Work:
   27 tests pass; the page is done.

9. Optional Next Step:
   Say in the README how to print a page, then commit.

Please continue the conversation from where we left it off without asking the user any further questions.""",
)


def head(a: Author, name: str, lines: int) -> str:
    """The first lines of a project file."""
    return "".join(line + "\n" for line in a.files[name].split("\n")[:lines])


def passing_run(tests: int, seconds: str) -> str:
    """Coloured output of a test run without failures."""
    dots = f"{GREEN}.{PLAIN}" * tests
    return (
        f"{dots}{GREEN}{' ' * 3}[100%]{PLAIN}\n{GREEN}{GREEN}{BOLD}{tests} passed{PLAIN}{GREEN} in {seconds}s{PLAIN}\n"
    )


def failing_run() -> str:
    """Coloured output of the first run of the constants' tests."""
    return (
        f"{GREEN}.{PLAIN}{RED}F{PLAIN}{RED}    [100%]{PLAIN}\n"
        f"=================================== FAILURES ===================================\n"
        f"{RED}{BOLD}______________________ test_unknown_constituent_is_named _______________________{PLAIN}\n\n"
        f'        file.write_text("[X]\\nmean_level = 1.0\\nQ9 = {{ amplitude = 1.0, phase = 0.0 }}\\n")\n'
        f'>       with pytest.raises(ValueError, match="Q9"):\n'
        f"{BOLD}{RED}E       Failed: DID NOT RAISE <class 'ValueError'>{PLAIN}\n\n"
        f"{BOLD}{RED}tests/test_constants.py{PLAIN}:17: Failed\n"
        f"{RED}{BOLD}1 failed{PLAIN}, {GREEN}1 passed{PLAIN}{RED} in 0.06s{PLAIN}\n"
    )


def mismatch_run() -> str:
    """Coloured output of the first comparison with the reference: every month is off."""
    pairs = [
        (m, sample_files.height("brest", 720 * m), sample_files.height("brest", 720 * m + 1)) for m in range(1, 13)
    ]
    lines = "".join(
        f"{RED}FAILED{PLAIN} tests/test_predict.py::{BOLD}"
        f"test_heights_agree_with_the_reference_of_brest[{month}]{PLAIN}"
        f" - assert {ours:.2f} == {theirs:.2f} ± 0.10\n"
        for month, ours, theirs in pairs
    )
    return f"{RED}F{PLAIN}" * 12 + f"{RED}    [100%]{PLAIN}\n{lines}{RED}{BOLD}12 failed{PLAIN}{RED} in 0.22s{PLAIN}\n"


def year_output() -> str:
    """Every high and low water of the year at Brest."""
    days = [datetime(2026, 1, 1) + timedelta(days=number) for number in range(365)]
    return "".join(sample_files.day_output("brest", day) for day in days)
