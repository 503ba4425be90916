"""The command line, from arguments to what is printed."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from wordcount.__main__ import main


class Command(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def write(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def run_main(self, *arguments: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(arguments)
        return code, out.getvalue(), err.getvalue()

    def test_the_counts_of_several_files_are_added(self) -> None:
        one, two = self.write("one.txt", "to be"), self.write("two.txt", "or not to be")
        self.assertEqual(self.run_main("-n", "2", one, two), (0, "     2  be\n     2  to\n", ""))

    def test_a_file_that_is_not_there_is_said_and_the_others_count(self) -> None:
        here = self.write("here.txt", "word")
        code, out, err = self.run_main(str(self.directory / "gone.txt"), here)
        self.assertEqual((code, out), (1, "     1  word\n"))
        self.assertIn("gone.txt: No such file or directory", err)


if __name__ == "__main__":
    unittest.main()
