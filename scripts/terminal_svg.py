"""Draw what a terminal shows as an SVG: one picture, or a few that follow each other.

Takes text with SGR codes, as `tmux capture-pane -p -e` prints it. Knows nothing of where that is from.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import unicodedata
from collections.abc import Iterator
from xml.sax.saxutils import escape

# One cell and the margin around all of them, in the picture's own units.
WIDTH, HEIGHT, MARGIN = 8.4, 18, 12
FONTS = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
FOREGROUND, BACKGROUND = "#e0e2ea", "#14161b"
ANSI = (
    "#07080d #ffc0b9 #b3f6c0 #fce094 #a6dbff #ffcaff #8cf8f7 #eef1f8 "
    "#4f5258 #ff8f85 #8be9a0 #f8d06b #7cc8ff #ff9eff #5ef0ef #ffffff"
).split()
# SGR codes, other CSI sequences, OSC sequences (links), single shifts.
ESCAPE = re.compile(r"\x1b\[([\d;:]*)m|\x1b\[[\d;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x0e\x0f]")
FLAGS = {1: "bold", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
CLEARED = {22: ("bold",), 23: ("italic",), 24: ("underline",), 27: ("reverse",), 29: ("strike",)}


@dataclasses.dataclass(frozen=True)
class Style:
    """How a cell looks; None is the terminal's own colour."""

    fg: str | None = None
    bg: str | None = None
    bold: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False
    strike: bool = False

    def colours(self) -> tuple[str, str]:
        """Return foreground and background as they are drawn."""
        pair = (self.fg or FOREGROUND, self.bg or BACKGROUND)
        return (pair[1], pair[0]) if self.reverse else pair


@dataclasses.dataclass(frozen=True)
class Run:
    """Characters of one look, beginning at a column."""

    column: int
    text: str
    columns: int
    style: Style


@dataclasses.dataclass(frozen=True)
class Frame:
    """What is shown, and for how many seconds."""

    lines: list[list[Run]]
    seconds: float


def parse(text: str) -> list[list[Run]]:
    """Return the lines of a capture; a style lasts over the ends of lines until it is changed."""
    style = Style()
    lines = []
    for line in text.rstrip("\n").split("\n"):
        runs: list[Run] = []
        column = at = 0
        for match in itertools.chain(ESCAPE.finditer(line), [None]):
            end = match.start() if match else len(line)
            for piece, columns in pieces(line[at:end]):
                runs.append(Run(column, piece, columns, style))
                column += columns
            if match and match[1] is not None:
                style = restyled(style, match[1])
            at = match.end() if match else end
        lines.append(runs)
    return lines


def pieces(text: str) -> Iterator[tuple[str, int]]:
    """Split into narrow text and single wide characters, each with its columns.

    A font without a wide character takes it from another one, whose width is not twice the first's:
    what comes after it would be out of place.
    """
    narrow = ""
    for cluster in clusters(text):
        if unicodedata.east_asian_width(cluster[0]) not in "WF":
            narrow += cluster
            continue
        if narrow:
            yield narrow, sum(1 for _ in clusters(narrow))
        yield cluster, 2
        narrow = ""
    if narrow:
        yield narrow, sum(1 for _ in clusters(narrow))


def clusters(text: str) -> Iterator[str]:
    """Split into characters, each with the marks that combine with it."""
    cluster = ""
    for char in text:
        if cluster and (unicodedata.combining(char) or char in "\u200d\ufe0e\ufe0f"):
            cluster += char
            continue
        if cluster:
            yield cluster
        cluster = char
    if cluster:
        yield cluster


def restyled(style: Style, parameters: str) -> Style:
    """Return the style after one SGR sequence."""
    codes = parameters.split(";")
    while codes:
        # What follows a colon says more of the code before it, and is no code itself.
        first, *more = codes.pop(0).split(":")
        code = int(first or 0)
        if code == 0:
            style = Style()
        elif code == 4 and more:
            # 4:0 is no line, the others are kinds of lines.
            style = dataclasses.replace(style, underline=more[0] != "0")
        elif code in FLAGS:
            style = dataclasses.replace(style, **{FLAGS[code]: True})
        elif code in CLEARED:
            style = dataclasses.replace(style, **dict.fromkeys(CLEARED[code], False))
        elif code in (38, 48):
            ground = "fg" if code == 38 else "bg"
            colour = detailed(more) if more else extended(codes)
            style = dataclasses.replace(style, **{ground: colour})
        elif code == 58 and not more:
            # The colour of the line below, which is not drawn.
            extended(codes)
        elif code in (39, 49):
            style = dataclasses.replace(style, **{"fg" if code == 39 else "bg": None})
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style = dataclasses.replace(style, fg=ANSI[code % 10 + (8 if code >= 90 else 0)])
        elif 40 <= code <= 47 or 100 <= code <= 107:
            style = dataclasses.replace(style, bg=ANSI[code % 10 + (8 if code >= 100 else 0)])
    return style


def extended(codes: list[str]) -> str | None:
    """Take the colour after a 38 or 48 off `codes`."""
    size = {"2": 4, "5": 2}.get(codes[0] if codes else "", 1)
    taken = codes[:size]
    del codes[:size]
    return detailed(taken)


def detailed(parts: list[str]) -> str | None:
    """Return a colour by its parts: `2`, red, green, blue or `5`, index; None if they are not whole.

    Written with colons, the first may be followed by a colour space, which is mostly left empty, and the
    last by a tolerance.
    """
    kind = parts[0] if parts else ""
    if kind == "2" and len(parts) >= 4:
        rgb = parts[1:4] if len(parts) == 4 else parts[2:5]
        return "#{:02x}{:02x}{:02x}".format(*(int(part or 0) for part in rgb))
    if kind == "5" and len(parts) >= 2:
        return indexed(int(parts[1] or 0))
    return None


def indexed(index: int) -> str:
    """Return one of a terminal's 256 colours."""
    if index < 16:
        return ANSI[index]
    if index >= 232:
        return "#{0:02x}{0:02x}{0:02x}".format(8 + 10 * (index - 232))
    levels = [(index - 16) // place % 6 for place in (36, 6, 1)]
    return "#{:02x}{:02x}{:02x}".format(*(level and 55 + 40 * level for level in levels))


def number(value: float) -> str:
    """Return a number as short as it can be written."""
    return f"{value:.1f}".removesuffix(".0")


def background(row: int, run: Run) -> str:
    """Return the rectangle behind a run, if it differs from the picture's own."""
    colour = run.style.colours()[1]
    if colour == BACKGROUND:
        return ""
    x, y = MARGIN + run.column * WIDTH, MARGIN + row * HEIGHT
    width = number(run.columns * WIDTH + 0.3)
    return f'<rect x="{number(x)}" y="{number(y)}" width="{width}" height="{HEIGHT + 0.3}" fill="{colour}"/>'


def words(row: int, run: Run) -> str:
    """Return a run's characters, stretched to its columns whatever the font."""
    text = run.text.rstrip(" ") if not run.style.underline else run.text
    if not text:
        return ""
    columns = run.columns - (len(run.text) - len(text))
    style = run.style
    decoration = " ".join(
        name for name, on in (("underline", style.underline), ("line-through", style.strike)) if on
    )
    attributes = {
        "x": number(MARGIN + run.column * WIDTH),
        "y": number(MARGIN + row * HEIGHT + 13.5),
        "textLength": number(columns * WIDTH),
        "fill": style.colours()[0] if style.colours()[0] != FOREGROUND else "",
        "font-weight": "bold" if style.bold else "",
        "font-style": "italic" if style.italic else "",
        "text-decoration": decoration,
    }
    written = "".join(f' {name}="{value}"' for name, value in attributes.items() if value)
    return f"<text{written}>{escape(text)}</text>"


def drawn(lines: list[list[Run]]) -> str:
    """Return all of one frame; backgrounds first, so that none hides a letter that leans over."""
    behind = (background(row, run) for row, line in enumerate(lines) for run in line)
    text = (words(row, run) for row, line in enumerate(lines) for run in line)
    return "\n".join(part for part in itertools.chain(behind, text) if part)


def animation(frames: list[Frame]) -> str:
    """Return the rules that show one frame after another; who wants no motion sees the last one."""
    total = sum(frame.seconds for frame in frames)
    rules = [f".f{{visibility:hidden;animation:{number(total)}s step-end infinite}}"]
    begin = 0.0
    for index, frame in enumerate(frames):
        end = begin + frame.seconds
        steps = [f"{number(begin / total * 100)}%{{visibility:visible}}"]
        if begin > 0:
            steps.insert(0, "0%{visibility:hidden}")
        if index < len(frames) - 1:
            steps.append(f"{number(end / total * 100)}%{{visibility:hidden}}")
        rules.append(f"@keyframes k{index}{{{''.join(steps)}}}")
        rules.append(f".f{index}{{animation-name:k{index}}}")
        begin = end
    rules.append(
        "@media (prefers-reduced-motion:reduce){.f{animation:none}"
        f".f{len(frames) - 1}{{visibility:visible}}}}"
    )
    return "".join(rules)


def svg(frames: list[Frame], columns: int, title: str) -> str:
    """Return the picture of frames that are `columns` wide."""
    rows = max(len(frame.lines) for frame in frames)
    width, height = columns * WIDTH + 2 * MARGIN, rows * HEIGHT + 2 * MARGIN
    groups = [
        f'<g class="f f{index}">\n{drawn(frame.lines)}\n</g>' if len(frames) > 1 else drawn(frame.lines)
        for index, frame in enumerate(frames)
    ]
    moving = animation(frames) if len(frames) > 1 else ""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(width)} {number(height)}" '
            f'width="{number(width)}" height="{number(height)}" role="img" '
            f'fill="{FOREGROUND}" font-family="{FONTS}" font-size="14">',
            f"<title>{escape(title)}</title>",
            f"<style>text{{white-space:pre}}{moving}</style>",
            f'<rect width="100%" height="100%" rx="6" fill="{BACKGROUND}"/>',
            *groups,
            "</svg>\n",
        ]
    )
