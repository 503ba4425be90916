"""What is said in the recorded rehearsal of `standard`, by the model and by the person.

It is about the shipped sample project, and what it claims of it must be true.
"""

# ruff: noqa: E501  these are texts, wrapped as texts
from typing import Any

TITLE = "Leave common words out of the list"
DESCRIPTION = (
    "The first ten words of almost any English text are “the”, “and”, “of”, “to”. Let me name words that "
    "wordcount leaves out."
)
REFINEMENT_INPUT = "I keep one list for each language. Let --stop-words be given more than once, and think of standard input."
REDO_FEEDBACK = "Put the tests of each step before its code, and say what happens when the list is not UTF-8."

RESEARCH = """\
# Leaving out common words

## The problem

The list shows what is frequent, and what is frequent in English is mostly grammar. The person wants to name
words that are not counted among the results. Not part of it: stemming, phrases, lists of our own.

## What is there

- `words()` yields each word case folded, line by line (`wordcount/counting.py:11`). Whatever is compared with a
  word has to be folded in the same way; reading a stop list with `words()` itself gives that for nothing.
- `count()` makes a `Counter` (`wordcount/counting.py:18`), `top()` sorts and cuts it
  (`wordcount/counting.py:23`). The cut comes last, so words have to be gone **before** `top()`, or `-n 10`
  shows fewer than ten.
- `main()` adds up the counts of all files and goes on when one can't be read
  (`wordcount/__main__.py:20`). It ends with 1 then.
- Six tests in `unittest`, in two files; the command line has a helper that catches what is printed
  (`tests/test_command.py:23`).

## What matters technically

- Only the standard library is used, and Python 3.10 is promised in `pyproject.toml`.
- Texts are read as UTF-8. A stop list should be no exception, with the same message when it is not.
- A text may be larger than the memory; the counts may not. Removing words from the counts costs nothing that
  counts.

## Risks

- A stop list that can't be read must not be taken for an empty one: the result would look right and be wrong.
- `-` means standard input for texts. If it means the same for the list, somebody will use it for both.
- Published lists often hold comments (`# articles`). Read as words, a comment removes words.

## Open questions

Where the words come from was asked above and is answered. Nothing else is open.
"""

APPROACHES: dict[str, Any] = {
    "options": [
        {
            "id": "A",
            "title": "Take them out of the finished counts",
            "description": "A function `without(counts, stop_words)` in `wordcount/counting.py`, called once in "
            "`main()` before `top()`. The list is read by `read()`, like any text. About ten lines of code; "
            "`words()`, `count()` and `top()` stay as they are.",
            "pros": [
                "No existing function or test changes",
                "The rule stands in one place and is easy to test",
            ],
            "cons": [
                "Words are counted only to be thrown away",
                "Who uses the library must call one more function",
            ],
            "recommended": True,
        },
        {
            "id": "B",
            "title": "Leave them out while counting",
            "description": "`words()` and `count()` take a set of words to leave out and pass it down. `read()` "
            "and `main()` hand it through. Every caller sees the new parameter.",
            "pros": ["The counts never hold a stop word", "One call for users of the library"],
            "cons": [
                "Three signatures change",
                "`words()` no longer says what a word is, but what is wanted",
            ],
        },
        {
            "id": "C",
            "title": "Filter what is printed",
            "description": "`main()` asks `top()` for more words than it needs and prints those that are not in "
            "the list, until it has enough. Nothing changes in `wordcount/counting.py`.",
            "pros": ["The change is in one function"],
            "cons": [
                "How many more to ask for is a guess, or the whole list is sorted",
                "No use to the library",
            ],
        },
    ]
}

PLAN = """\
# Plan: take stop words out of the finished counts

## Aim

`wordcount --stop-words FILE` leaves out the words of that file. `-n 10` still shows ten words if there are ten.

## Steps

1. **`without()` in `wordcount/counting.py`**, behind `count()`: the counts without the words of a container.
   Export it in `wordcount/__init__.py`. Done when a test removes two of three words.
2. **`-s`, `--stop-words FILE` in `wordcount/__main__.py`**: read the list with `read()` before the texts; if it
   can't be read, say so as for a text and end with 1, before anything is counted. Then
   `top(without(counts, stop_words), options.number)`. Done when the two tests below pass.
3. **`README.md`**: an example, and what a stop list looks like.

## Tests

- `tests/test_counting.py`: stop words are gone, the other counts are as they were.
- `tests/test_command.py`: the words are gone before the most frequent are chosen (`-n 1` gives the second
  word); a list that is not there ends with 1 and prints no count.

## Not touched

`words()`, `count()`, `top()`, and how an unreadable text is handled.

## Risks

A list with comments removes the words of its comments. The README says that a list is a text; if this
hurts, a later change can skip lines that begin with `#`. To go back, revert the commit: no data is involved.
"""

PLAN_AGAIN = """\
# Plan: take stop words out of the finished counts

## Aim

`wordcount --stop-words FILE` leaves out the words of that file. `-n 10` still shows ten words if there are ten.

## Steps

1. **Test first**, in `tests/test_counting.py`: `without()` removes the named words and keeps the other counts.
   It fails, for there is no `without()`.
2. **`without()` in `wordcount/counting.py`**, behind `count()`, and its export in `wordcount/__init__.py`. The
   test of step 1 passes.
3. **Tests first**, in `tests/test_command.py`: the words are gone before the most frequent are chosen (`-n 1`
   gives the second word); a list that is not there ends with 1 and prints no count. Both fail.
4. **`-s`, `--stop-words FILE` in `wordcount/__main__.py`**: read the list with `read()` before the texts, then
   `top(without(counts, stop_words), options.number)`. The tests of step 3 pass.
5. **`README.md`**: an example, and what a stop list looks like.

## A list that is not UTF-8

`read()` raises `UnicodeDecodeError`, as for a text. It is caught where a missing list is, and said in the same
words: `wordcount: list.txt: it is not UTF-8`. The exit status is 1 and nothing is counted, because a result
without the list would look right and be wrong.

## Not touched

`words()`, `count()`, `top()`, and how an unreadable text is handled.

## Risks

A list with comments removes the words of its comments; the README says that a list is a text. To go back,
revert the commit: no data is involved.
"""

REPORT = """\
# Stop words

## What was done

1. `without()` takes words out of counts (`wordcount/counting.py`); it is exported by `wordcount/__init__.py` and
   has a test in `tests/test_counting.py`.
2. `-s`, `--stop-words FILE` (`wordcount/__main__.py`) reads a list as any text and leaves its words out before
   the most frequent are chosen. A list that can't be read ends the run with 1 before anything is counted. Two
   tests in `tests/test_command.py`.
3. `README.md` has an example and says what a stop list is.

## What differs from the plan

Nothing.

## Checks

`python3 -m unittest`: 9 tests, all pass; there were 6 before.

## What is open

`--stop-words -` reads the list from standard input. Together with a text from standard input the text comes out
empty, without a word about it.
"""

REFINED = """\
# Stop words, after a second look

## The change

- `wordcount/counting.py`: `without(counts, stop_words)`, the counts without some words.
- `wordcount/__main__.py`: `-s`, `--stop-words FILE`, as often as one likes. The words of all lists are left out
  before the most frequent are chosen. A list that can't be read ends the run with 1, with its name and the
  reason, before anything is counted.
- `README.md`: the option and what a list is.
- `tests/`: five tests more than before the task, eleven in all.

## What this stage changed

- **Several lists**, as you wanted: the option can be repeated, and the lists are one.
- **Standard input**: it can be a text or a list. For both at once the command now ends with 2 and says so;
  before, the list took everything and the text was silently empty.

## Checks

`python3 -m unittest`: 11 tests, all pass. `git status` shows the changed files and nothing else.

## What is left

Comments in a list are read as words; the README says so.
"""

REVIEW: dict[str, Any] = {
    "items": [
        {
            "severity": "warning",
            "title": "A text that is one long line is held whole",
            "detail": "Files are read line by line, so memory is bounded by the longest line only. A file without "
            "line ends, or a device like `/dev/zero`, is read until the memory is full. That was so before; "
            "`--stop-words` is a second way to it. Reading in blocks of bounded size would mend both.",
            "file": "wordcount/counting.py",
            "line": 13,
        },
        {
            "severity": "warning",
            "title": "The name of an unreadable list is printed as it is",
            "detail": "A file name may hold escape sequences, and the terminal obeys them. It matters where names "
            "come out of a directory that others write to. `{name!r}` would mend it, here and for texts.",
            "file": "wordcount/__main__.py",
            "line": 34,
        },
        {
            "severity": "info",
            "title": "A printed word has letters and apostrophes only",
            "detail": "Whatever a text holds, only what `WORD` matches is printed: no control characters and no "
            "escape sequences. The expression has no two repetitions that could match the same characters, so "
            "no text makes it slow.",
            "file": "wordcount/counting.py",
            "line": 8,
        },
        {
            "severity": "info",
            "title": "Files are only read, with the caller's rights",
            "detail": "Names come from the command line and are opened as they are: nothing is joined, expanded or "
            "written, and there is no border of rights to cross.",
            "file": "wordcount/__main__.py",
            "line": 54,
        },
        {
            "severity": "info",
            "title": "No dependency, process or network connection is new",
            "detail": "The project has no dependencies before and after; the change imports nothing but "
            "`collections.abc.Container`.",
            "file": "pyproject.toml",
            "line": 1,
        },
    ]
}

PULL_REQUEST: dict[str, Any] = {
    "title": "Add --stop-words to leave common words out of the list",
    "description": """\
The most frequent words of a text are mostly grammar. `--stop-words FILE` (`-s`) leaves out the words of a file,
so that the list shows what the text is about.

**What changed**

- `without()` in `wordcount/counting.py` takes words out of finished counts. `words()`, `count()` and `top()` are
  untouched.
- `main()` reads the lists with the function that reads texts, so case, apostrophes and UTF-8 are treated alike.
  The option can be repeated.

**Look here first**

- A list that can't be read ends the run instead of being taken for an empty one.
- Standard input as text and as list at once is refused, with exit status 2.
- Accepted in the security review: one very long line is held in memory, as before.
""",
    "test_plan": """\
1. `printf 'the cat and the dog' | python3 -m wordcount -n 1` prints `2  the`.
2. `printf 'the and' > stop.txt`, then the same with `-s stop.txt` prints `1  cat`.
3. With `-s gone.txt` it prints `wordcount: gone.txt: No such file or directory` and no counts; exit status 1.
4. With `-s -` and the text on standard input it refuses; exit status 2.

Automated: `python3 -m unittest`, 11 tests, covers 2 to 4. Not covered: a list that is not UTF-8.
""",
}

QUESTION: dict[str, Any] = {
    "question": "Where should the words come from that are left out?",
    "header": "Stop words",
    "multiSelect": False,
    "options": [
        {
            "label": "A file that is named (Recommended)",
            "description": "Works for every language and subject; nothing of ours to maintain.",
        },
        {
            "label": "A list that ships with wordcount",
            "description": "Nothing to prepare, but English only, and somebody will miss a word.",
        },
        {"label": "Both", "description": "The shipped list, which a file replaces."},
    ],
}
