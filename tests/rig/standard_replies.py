"""What the model does in the recorded rehearsal of `standard`: one small feature in the shipped sample project.

`record_rehearsal.py` plays this to the real `claude`, which then reads, edits and tests for real; so the edits
must fit the sample.
"""

from pathlib import Path

from rig.messages_api import Reply, Text, Thinking, Use
from rig.standard_texts import (
    APPROACHES,
    PLAN,
    PLAN_AGAIN,
    PULL_REQUEST,
    QUESTION,
    REFINED,
    REPORT,
    RESEARCH,
    REVIEW,
)


def replies(root: Path) -> dict[str, tuple[Reply, ...]]:
    """The model's messages for each recording, `<stage>.<attempt>`, with the sample project in `root`."""

    def read(*names: str) -> tuple[Use, ...]:
        return tuple(Use("Read", {"file_path": str(root / name)}) for name in names)

    def edit(name: str, old: str, new: str) -> Use:
        return Use("Edit", {"file_path": str(root / name), "old_string": old, "new_string": new})

    def write(name: str, content: str) -> Use:
        return Use("Write", {"file_path": str(root / name), "content": content})

    tests = Use("Bash", {"command": "python3 -m unittest", "description": "Run all tests"})
    return {
        "research.1": (
            _reply(
                Thinking("A counting tool. First what is there: the files, then how words are counted."),
                Text("I look at the project first."),
                Use("Glob", {"pattern": "**/*.py"}),
                *read("README.md"),
            ),
            _reply(
                Text("Two modules matter: what a word is, and the command line."),
                *read("wordcount/counting.py", "wordcount/__main__.py"),
            ),
            _reply(
                Text("Now who uses these functions, and what the tests hold fast."),
                Use("Grep", {"pattern": r"\b(count|top|words)\(", "output_mode": "content", "-n": True}),
                *read("tests/test_command.py"),
            ),
            _reply(
                Text("One thing the code can't tell: whose words are left out."),
                Use("AskUserQuestion", {"questions": [QUESTION]}),
            ),
            _reply(Text(RESEARCH)),
        ),
        "high-level-approaches.1": (
            _reply(
                Text("Each way depends on where the counts are cut off; I read that again."),
                *read("wordcount/counting.py", "wordcount/__main__.py"),
            ),
            _reply(Use("StructuredOutput", APPROACHES)),
        ),
        "planning.1": (
            _reply(
                Text("I read every file that the plan will touch."),
                *read("wordcount/counting.py", "wordcount/__main__.py", "wordcount/__init__.py"),
                *read("tests/test_counting.py", "tests/test_command.py", "README.md"),
            ),
            _reply(Text(PLAN)),
        ),
        "planning.2": (
            _reply(
                Text("How an unreadable text is handled decides what happens to the list; I look once more."),
                *read("wordcount/__main__.py"),
            ),
            _reply(Text(PLAN_AGAIN)),
        ),
        "implementation.1": (
            _reply(
                Thinking(
                    "Three steps, each with its tests. The files have to be read before they are edited."
                ),
                Text("I begin with the counts."),
                *read("wordcount/counting.py", "wordcount/__init__.py", "tests/test_counting.py"),
            ),
            _reply(
                Text("Step 1: `without()` and its test."),
                edit(
                    "tests/test_counting.py",
                    "from wordcount import count, top\n",
                    "from wordcount import count, top, without\n",
                ),
                edit(
                    "tests/test_counting.py",
                    '        self.assertEqual(top(count(["b a c c"]), 2), [("c", 2), ("a", 1)])\n',
                    '        self.assertEqual(top(count(["b a c c"]), 2), [("c", 2), ("a", 1)])\n'
                    "\n"
                    "    def test_stop_words_are_gone_and_the_others_are_as_they_were(self) -> None:\n"
                    '        left = without(count(["the cat and the dog"]), {"the", "and"})\n'
                    '        self.assertEqual(left, {"cat": 1, "dog": 1})\n',
                ),
                edit(
                    "wordcount/counting.py",
                    "from collections.abc import Iterable, Iterator\n",
                    "from collections.abc import Container, Iterable, Iterator\n",
                ),
                edit(
                    "wordcount/counting.py",
                    "def top(",
                    "def without(counts: Counter[str], stop_words: Container[str]) -> Counter[str]:\n"
                    '    """The counts without some words, which must be case folded as all words are here."""\n'
                    "    return Counter({word: number for word, number in counts.items() "
                    "if word not in stop_words})\n"
                    "\n\n"
                    "def top(",
                ),
                write(
                    "wordcount/__init__.py",
                    '"""The most frequent words of a text."""\n'
                    "\n"
                    "from wordcount.counting import count, top, without, words\n"
                    "\n"
                    '__all__ = ["count", "top", "without", "words"]\n',
                ),
            ),
            _reply(
                Text("Step 2: the option. First the command line and its tests as they are."),
                *read("wordcount/__main__.py", "tests/test_command.py", "README.md"),
            ),
            _reply(
                edit(
                    "tests/test_command.py",
                    '        self.assertIn("gone.txt: No such file or directory", err)\n',
                    '        self.assertIn("gone.txt: No such file or directory", err)\n'
                    "\n"
                    "    def test_stop_words_are_gone_before_the_most_frequent_are_chosen(self) -> None:\n"
                    '        text = self.write("text.txt", "the cat and the dog")\n'
                    '        stop = self.write("stop.txt", "The\\nAND\\n")\n'
                    '        self.assertEqual(self.run_main("-n", "1", "-s", stop, text), '
                    '(0, "     1  cat\\n", ""))\n'
                    "\n"
                    "    def test_a_stop_list_that_is_not_there_ends_the_run(self) -> None:\n"
                    '        text = self.write("text.txt", "word")\n'
                    '        code, out, err = self.run_main("-s", str(self.directory / "gone.txt"), text)\n'
                    '        self.assertEqual((code, out), (1, ""))\n'
                    '        self.assertIn("gone.txt: No such file or directory", err)\n',
                ),
                edit(
                    "wordcount/__main__.py",
                    '"""The command line: `wordcount [-n N] [FILE…]`."""',
                    '"""The command line: `wordcount [-n N] [-s FILE] [FILE…]`."""',
                ),
                edit(
                    "wordcount/__main__.py",
                    "from wordcount.counting import count, top\n",
                    "from wordcount.counting import count, top, without\n",
                ),
                edit(
                    "wordcount/__main__.py",
                    "    options = parser.parse_args(arguments)\n\n",
                    '    parser.add_argument("-s", "--stop-words", metavar="FILE", '
                    'help="leave out the words of this text")\n'
                    "    options = parser.parse_args(arguments)\n"
                    "\n"
                    "    stop_words: Counter[str] = Counter()\n"
                    "    if options.stop_words:\n"
                    "        try:\n"
                    "            stop_words = read(options.stop_words)\n"
                    "        except (OSError, UnicodeDecodeError) as error:\n"
                    '            print(f"wordcount: {options.stop_words}: {reason(error)}", file=sys.stderr)\n'
                    "            return 1\n"
                    "\n",
                ),
                edit(
                    "wordcount/__main__.py",
                    "in top(counts, options.number):",
                    "in top(without(counts, stop_words), options.number):",
                ),
            ),
            _reply(
                Text("Step 3: the README."),
                edit(
                    "README.md",
                    "Tests: ",
                    "Common words can be left out. A stop list is a text; every word in it counts, also in a comment:\n"
                    "\n"
                    "    $ python -m wordcount -n 1 --stop-words english.txt letter.txt\n"
                    "         7  house\n"
                    "\n"
                    "Tests: ",
                ),
            ),
            _reply(Text("Now all tests."), tests),
            _reply(Text(REPORT)),
        ),
        "refinement.1": (
            _reply(
                Thinking("What did the change do, and what happens with standard input twice?"),
                Text("I look at the change itself, not at the report."),
                Use("Bash", {"command": "git status --short", "description": "Show what has changed"}),
                *read("wordcount/__main__.py", "tests/test_command.py", "README.md"),
            ),
            _reply(
                Text(
                    "`-s -` with a text from standard input leaves nothing to count, and says nothing. I refuse "
                    "that, and let the option be repeated."
                ),
                edit(
                    "tests/test_command.py",
                    "    def test_a_stop_list_that_is_not_there_ends_the_run(self) -> None:\n",
                    "    def test_several_stop_lists_are_one(self) -> None:\n"
                    '        text = self.write("text.txt", "the cat und der dog")\n'
                    '        english, german = self.write("en.txt", "the"), self.write("de.txt", "und der")\n'
                    '        code, out, _ = self.run_main("-s", english, "-s", german, text)\n'
                    '        self.assertEqual((code, out), (0, "     1  cat\\n     1  dog\\n"))\n'
                    "\n"
                    "    def test_standard_input_is_not_text_and_stop_list_at_once(self) -> None:\n"
                    "        with self.assertRaises(SystemExit) as refused, "
                    "contextlib.redirect_stderr(io.StringIO()):\n"
                    '            main(["-s", "-"])\n'
                    "        self.assertEqual(refused.exception.code, 2)\n"
                    "\n"
                    "    def test_a_stop_list_that_is_not_there_ends_the_run(self) -> None:\n",
                ),
                edit(
                    "wordcount/__main__.py",
                    '"""The command line: `wordcount [-n N] [-s FILE] [FILE…]`."""',
                    '"""The command line: `wordcount [-n N] [-s FILE]… [FILE…]`."""',
                ),
                edit(
                    "wordcount/__main__.py",
                    '    parser.add_argument("-s", "--stop-words", metavar="FILE", '
                    'help="leave out the words of this text")\n',
                    "    parser.add_argument(\n"
                    '        "-s",\n'
                    '        "--stop-words",\n'
                    '        action="append",\n'
                    "        default=[],\n"
                    '        metavar="FILE",\n'
                    '        help="leave out the words of this text; can be given more than once",\n'
                    "    )\n",
                ),
                edit(
                    "wordcount/__main__.py",
                    "    stop_words: Counter[str] = Counter()\n"
                    "    if options.stop_words:\n"
                    "        try:\n"
                    "            stop_words = read(options.stop_words)\n"
                    "        except (OSError, UnicodeDecodeError) as error:\n"
                    '            print(f"wordcount: {options.stop_words}: {reason(error)}", file=sys.stderr)\n',
                    '    texts = options.files or ["-"]\n'
                    '    if "-" in texts and "-" in options.stop_words:\n'
                    '        parser.error("standard input can\'t be a text and a stop list at once")\n'
                    "    stop_words: Counter[str] = Counter()\n"
                    "    for name in options.stop_words:\n"
                    "        try:\n"
                    "            stop_words += read(name)\n"
                    "        except (OSError, UnicodeDecodeError) as error:\n"
                    '            print(f"wordcount: {name}: {reason(error)}", file=sys.stderr)\n',
                ),
                edit("wordcount/__main__.py", 'for name in options.files or ["-"]:', "for name in texts:"),
                edit(
                    "README.md",
                    "Common words can be left out. A stop list is a text; "
                    "every word in it counts, also in a comment:\n",
                    "Common words can be left out, by one stop list or several. "
                    "A list is a text; every word in it counts,\n"
                    "also in a comment:\n",
                ),
            ),
            _reply(Text("The tests once more, after the last edit."), tests),
            _reply(Text(REFINED)),
        ),
        "security-review.1": (
            _reply(
                Text("I follow the data: names and texts from outside, to what is printed."),
                *read("wordcount/__main__.py", "wordcount/counting.py", "pyproject.toml"),
                Use(
                    "Grep",
                    {"pattern": r"open\(|print\(|subprocess|eval", "output_mode": "content", "-n": True},
                ),
            ),
            _reply(Use("StructuredOutput", REVIEW)),
        ),
        "pr-preparation.1": (
            _reply(
                Text("I read the change once more, and look for a template."),
                *read("wordcount/__main__.py", "wordcount/counting.py", "tests/test_command.py"),
                Use("Glob", {"pattern": "**/*template*"}),
            ),
            _reply(Use("StructuredOutput", PULL_REQUEST)),
        ),
    }


def _reply(*blocks: Text | Thinking | Use) -> Reply:
    """A message that has cost about what its length would."""
    size = sum(len(str(block)) for block in blocks)
    return Reply(blocks, input_tokens=9000 + size, output_tokens=size // 4)
