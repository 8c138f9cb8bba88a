"""How the recording is drawn: what a terminal shows, as an SVG. The recording itself is made by hand."""

from __future__ import annotations

import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from xml.etree import ElementTree

from support import ROOT, SCRIPTS
import record
import terminal_svg
from terminal_svg import ANSI, BACKGROUND, FOREGROUND, Frame, Run, Style

# Writes a recording of one screen, without a terminal.
PLAY = """\
import pathlib
import shutil
import sys

import record


def one(_: pathlib.Path) -> record.Recording:
    recording = record.Recording()
    recording.kept.append(("one", "\\u6f22", 1))
    return recording


record.record = one
shutil.which = lambda name: name
sys.argv = ["record.py", "--bin", "co-nvim", "--to", sys.argv[1]]
sys.exit(record.main())
"""
SVG = "{http://www.w3.org/2000/svg}"


def one(text: str) -> list[Run]:
    """Return the runs of a single line."""
    (line,) = terminal_svg.parse(text)
    return line


def picture(text: str) -> ElementTree.Element:
    """Return the picture of one screen."""
    return ElementTree.fromstring(terminal_svg.svg([Frame(terminal_svg.parse(text), 1)], 20, "t"))


class ParseTest(unittest.TestCase):
    def test_styles_become_runs(self) -> None:
        for codes, style in [
            ("1;31", Style(fg=ANSI[1], bold=True)),
            ("92;104", Style(fg=ANSI[10], bg=ANSI[12])),
            ("38;2;1;2;255", Style(fg="#0102ff")),
            ("38:2:1:2:255", Style(fg="#0102ff")),
            ("38;5;208;4", Style(fg="#ff8700", underline=True)),
            ("48;5;232;3;9", Style(bg="#080808", italic=True, strike=True)),
            ("1;22;7", Style(reverse=True)),
            ("31;39", Style()),
            ("31;0", Style()),
            ("31;", Style()),
            ("4:3", Style(underline=True)),
            ("4:3;31", Style(fg=ANSI[1], underline=True)),
            ("4;4:0", Style()),
            ("38:2::1:2:255", Style(fg="#0102ff")),
            ("38:2::1:2:255:0:1;4", Style(fg="#0102ff", underline=True)),
            ("38:5:208;1", Style(fg="#ff8700", bold=True)),
            ("48:5:232", Style(bg="#080808")),
            ("38:2:1", Style()),
            ("38;2;1", Style()),
            ("38;9;1", Style(bold=True)),
            ("38", Style()),
            ("58:2::1:2:3", Style()),
            ("58;2;1;3;4", Style()),
        ]:
            with self.subTest(codes):
                self.assertEqual(one(f"\x1b[{codes}mx"), [Run(0, "x", 1, style)])

    def test_a_style_lasts_over_the_end_of_a_line(self) -> None:
        first, second = terminal_svg.parse("\x1b[31ma\nb\n")
        self.assertEqual(first[0].style, second[0].style)

    def test_what_is_no_style_leaves_nothing(self) -> None:
        runs = one("a\x1b[Kb\x1b]8;;http://x\x1b\\c\x1b]8;;\x07d\x0e")
        self.assertEqual("".join(run.text for run in runs), "abcd")
        self.assertEqual([run.column for run in runs], [0, 1, 2, 3])

    def test_a_wide_character_takes_two_columns_and_a_mark_none(self) -> None:
        runs = one("a漢e\u0301z")
        self.assertEqual(
            [(run.column, run.text, run.columns) for run in runs],
            [(0, "a", 1), (1, "漢", 2), (3, "e\u0301z", 2)],
        )


class PictureTest(unittest.TestCase):
    def test_text_is_escaped_and_in_its_place(self) -> None:
        tree = picture("a\n  <b> & \x1b[1;31mc\x1b[0m")
        texts = [(it.text, float(it.get("x")), float(it.get("y"))) for it in tree.iter(SVG + "text")]
        self.assertEqual([it[0] for it in texts], ["a", "  <b> &", "c"])
        self.assertEqual(texts[0][1], texts[1][1])
        self.assertEqual(round(texts[2][1] - texts[1][1], 1), round(8 * terminal_svg.WIDTH, 1))
        self.assertEqual(texts[1][2] - texts[0][2], terminal_svg.HEIGHT)
        last = list(tree.iter(SVG + "text"))[-1]
        self.assertEqual((last.get("fill"), last.get("font-weight")), (ANSI[1], "bold"))

    def test_reversed_text_has_its_colours_exchanged(self) -> None:
        tree = picture("\x1b[7mx")
        ground = list(tree.iter(SVG + "rect"))[1]
        self.assertEqual(ground.get("fill"), FOREGROUND)
        self.assertEqual(next(tree.iter(SVG + "text")).get("fill"), BACKGROUND)

    def test_each_frame_is_seen_in_its_time(self) -> None:
        frames = [Frame(terminal_svg.parse(text), seconds) for text, seconds in (("a", 1), ("b", 3))]
        drawn = terminal_svg.svg(frames, 20, "two & more")
        tree = ElementTree.fromstring(drawn)
        self.assertEqual([it.get("class") for it in tree.iter(SVG + "g")], ["f f0", "f f1"])
        self.assertEqual(tree.find(SVG + "title").text, "two & more")
        style = tree.find(SVG + "style").text
        self.assertIn("animation:4s", style)
        self.assertIn("@keyframes k0{0%{visibility:visible}25%{visibility:hidden}}", style)
        self.assertIn("@keyframes k1{0%{visibility:hidden}25%{visibility:visible}}", style)


class RecordingTest(unittest.TestCase):
    def test_what_the_readme_shows_is_there_and_small(self) -> None:
        self.assertIn("(docs/demo.svg)", (ROOT / "README.md").read_text())
        drawn = ROOT / "docs" / "demo.svg"
        self.assertLess(drawn.stat().st_size, 150_000)
        tree = ElementTree.parse(drawn)
        words = "".join(text.text for text in tree.iter(SVG + "text"))
        for text in ("fix the failing test", "co 1/1", "while cents", "Ran 3 tests", "exit 0"):
            self.assertIn(text, words)
            self.assertIn(text, (ROOT / "docs" / "demo.txt").read_text())

    def test_a_screen_that_never_rests_is_given_up(self) -> None:
        class Restless(record.Terminal):
            def __init__(self) -> None:
                self.shown = 0

            def run(self, *arguments: str) -> str:
                self.shown += 1
                return str(self.shown)

        now = itertools.count(step=record.PATIENCE_S / 4)
        with (
            unittest.mock.patch("record.time.monotonic", lambda: next(now)),
            unittest.mock.patch("record.time.sleep"),
            self.assertRaisesRegex(record.demo.DemoError, "still changes"),
        ):
            Restless().still()

    def test_what_is_written_is_utf_8_whatever_the_locale(self) -> None:
        with tempfile.TemporaryDirectory() as to:
            path = pathlib.Path(to)
            (path / "play.py").write_text(PLAY, encoding="utf-8")
            subprocess.run(
                [sys.executable, "-X", "utf8=0", path / "play.py", to],
                env={**os.environ, "PYTHONPATH": str(SCRIPTS), "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
                check=True,
                capture_output=True,
            )
            for name in ("demo.txt", "demo.svg"):
                self.assertIn("漢", (path / name).read_text(encoding="utf-8"))

    def test_without_tmux_it_says_so(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run(
                [sys.executable, SCRIPTS / "record.py", "--bin", "co-nvim", "--to", empty],
                env={**os.environ, "PATH": empty},
                capture_output=True,
                text=True,
            )
            self.assertEqual(list(pathlib.Path(empty).iterdir()), [])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "record: recording needs tmux: install it and try again\n")


if __name__ == "__main__":
    unittest.main()
