"""What counts as a word."""

import unittest

from wordcount import count, top


class Counting(unittest.TestCase):
    def test_upper_and_lower_case_are_the_same(self) -> None:
        self.assertEqual(count(["The the THE"]), {"the": 3})

    def test_an_apostrophe_inside_belongs_to_the_word(self) -> None:
        self.assertEqual(count(["don't 'tis"]), {"don't": 1, "tis": 1})

    def test_digits_and_underscores_are_no_letters(self) -> None:
        self.assertEqual(count(["room_12 b"]), {"room": 1, "b": 1})

    def test_equal_counts_stand_in_alphabetical_order(self) -> None:
        self.assertEqual(top(count(["b a c c"]), 2), [("c", 2), ("a", 1)])


if __name__ == "__main__":
    unittest.main()
