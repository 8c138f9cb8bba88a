import unittest

from change import change


class ChangeTest(unittest.TestCase):
    def test_nothing(self):
        self.assertEqual(change(0), [])

    def test_each_coin_once(self):
        self.assertEqual(change(188), [100, 50, 20, 10, 5, 2, 1])

    def test_a_coin_twice(self):
        self.assertEqual(change(40), [20, 20])


if __name__ == "__main__":
    unittest.main()
