import unittest

from invoices.money import InvalidAmount, format_amount, multiply, parse_amount


class ParseAmount(unittest.TestCase):
    def test_whole_number(self):
        self.assertEqual(parse_amount("12"), 1200)

    def test_two_decimals(self):
        self.assertEqual(parse_amount("3.40"), 340)

    def test_one_decimal(self):
        self.assertEqual(parse_amount("3.4"), 340)

    def test_thousands(self):
        self.assertEqual(parse_amount("1,234.56"), 123456)

    def test_millions(self):
        self.assertEqual(parse_amount("1,234,567.00"), 123456700)

    def test_spaces(self):
        self.assertEqual(parse_amount(" 12.00 "), 1200)

    def test_negative(self):
        self.assertEqual(parse_amount("-5.00"), -500)

    def test_words_are_refused(self):
        with self.assertRaises(InvalidAmount):
            parse_amount("twelve")

    def test_three_decimals_are_refused(self):
        with self.assertRaises(InvalidAmount):
            parse_amount("1.234")

    def test_nothing_is_refused(self):
        with self.assertRaises(InvalidAmount):
            parse_amount("")


class Multiply(unittest.TestCase):
    def test_exact(self):
        self.assertEqual(multiply(1000, "0.20"), 200)

    def test_half_goes_to_even(self):
        self.assertEqual(multiply(250, "0.05"), 12)
        self.assertEqual(multiply(350, "0.05"), 18)


class FormatAmount(unittest.TestCase):
    def test_thousands(self):
        self.assertEqual(format_amount(123456), "1,234.56 EUR")

    def test_negative(self):
        self.assertEqual(format_amount(-500, "SEK"), "-5.00 SEK")


if __name__ == "__main__":
    unittest.main()
