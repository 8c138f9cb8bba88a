//! Converts the bytes of an output to lines of text, as a terminal would show them.
//!
//! The result does not depend on how the bytes are divided into pieces. A newline ends every escape sequence, so there are as
//! many lines as newline bytes. The decoder keeps at most one line in memory, of at most [`MAX_LINE_CHARS`] characters.

use crate::output::sgr::Sgr;

/// The most characters in one line. More characters are counted, but not kept. Neovim takes 20 ms to scroll over so many wide
/// characters.
pub(crate) const MAX_LINE_CHARS: usize = 50_000;
/// The most bytes that are kept of the parameters of a control sequence.
const MAX_PARAMETER_BYTES: usize = 64;

/// The character encoding of an output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    #[default]
    Utf8,
    Utf16 {
        little: bool,
    },
}

impl Encoding {
    /// Returns the encoding of a stream, judging by its first bytes (the byte order mark).
    pub(crate) fn of(start: &[u8]) -> Self {
        match start {
            [0xff, 0xfe, ..] => Self::Utf16 { little: true },
            [0xfe, 0xff, ..] => Self::Utf16 { little: false },
            _ => Self::Utf8,
        }
    }
}

/// One line, without its newline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) spans: Vec<Span>,
    /// The number of bytes of the stream that make up this line, including its newline.
    pub(crate) raw: u64,
}

/// A part of a line that has one style. The positions are byte offsets, and the end is exclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) sgr: Sgr,
}

/// Decodes a stream of bytes into lines.
#[derive(Debug, Default)]
pub(crate) struct LineDecoder {
    encoding: Encoding,
    longest: usize,
    keeps_nul: bool,
    /// The first byte of an incomplete UTF-16 unit.
    half: Option<u8>,
    /// The first half of an incomplete surrogate pair.
    surrogate: Option<u16>,
    /// The bytes of an incomplete UTF-8 character.
    partial: Vec<u8>,
    state: EscapeState,
    parameters: Vec<u8>,
    sgr: Sgr,
    cells: Vec<Cell>,
    column: usize,
    /// The number of characters that were skipped since the cursor reached column `longest`.
    beyond: u64,
    /// The number of characters that the current line lacks: the highest value that `beyond` had in this line.
    lost: u64,
    raw: u64,
    done: Vec<Line>,
    finished: bool,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    char: char,
    sgr: Sgr,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Ground,
    Escape,
    /// `ESC ( B` and similar sequences: one more byte follows.
    Designate,
    Csi,
    /// An OSC, DCS, APC, PM or SOS sequence, which lasts until BEL or `ESC \`.
    String,
    StringEscape,
}

impl LineDecoder {
    pub(crate) fn new(encoding: Encoding) -> Self {
        Self::roomy(encoding, MAX_LINE_CHARS)
    }

    /// Creates a decoder for lines of at most `longest` characters.
    pub(crate) fn roomy(encoding: Encoding, longest: usize) -> Self {
        Self {
            encoding,
            longest,
            ..Self::default()
        }
    }

    /// Makes the decoder keep NUL characters. An editor shows them as `^@`.
    #[must_use]
    pub(crate) fn with_nul(self) -> Self {
        Self {
            keeps_nul: true,
            ..self
        }
    }

    /// Decodes the next bytes of the stream.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        match self.encoding {
            Encoding::Utf8 => self.feed_utf8(bytes),
            Encoding::Utf16 { little } => self.feed_utf16(bytes, little),
        }
    }

    /// Ends the stream. Replaces an incomplete character.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
        if !self.partial.is_empty() {
            self.partial.clear();
            self.char(char::REPLACEMENT_CHARACTER);
        }
        if self.half.take().is_some() | self.surrogate.take().is_some() {
            self.char(char::REPLACEMENT_CHARACTER);
        }
    }

    /// Removes and returns the complete lines.
    pub(crate) fn take(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.done)
    }

    /// Returns the unfinished line. Returns `None` if the line is empty.
    pub(crate) fn rest(&self) -> Option<Line> {
        (!self.cells.is_empty()).then(|| self.line(self.finished))
    }

    fn feed_utf8(&mut self, mut bytes: &[u8]) {
        while let Some(&byte) = bytes.first() {
            if self.partial.is_empty() && byte < 0x80 {
                let run = self.plain_run(bytes);
                bytes = &bytes[run..];
                if run == 0 {
                    self.raw += 1;
                    self.char(char::from(byte));
                    bytes = &bytes[1..];
                }
                continue;
            }
            self.raw += 1;
            self.partial.push(byte);
            bytes = &bytes[1..];
            self.decode();
        }
    }

    /// Appends a run of printable ASCII characters to the line in one step. Returns the length of the run.
    fn plain_run(&mut self, bytes: &[u8]) -> usize {
        if self.state != EscapeState::Ground || self.column != self.cells.len() {
            return 0;
        }
        let room = self.longest - self.column;
        let run = bytes
            .iter()
            .take(room)
            .take_while(|byte| (0x20..0x7f).contains(*byte))
            .count();
        let sgr = self.sgr;
        let cells = bytes[..run].iter().map(|&byte| Cell {
            char: char::from(byte),
            sgr,
        });
        self.cells.extend(cells);
        self.column += run;
        self.raw += run as u64;
        run
    }

    /// Decodes the complete characters among the pending bytes.
    fn decode(&mut self) {
        while !self.partial.is_empty() {
            let pending = std::mem::take(&mut self.partial);
            match std::str::from_utf8(&pending) {
                Ok(text) => text.chars().for_each(|c| self.char(c)),
                Err(error) => match error.error_len() {
                    None => {
                        self.partial = pending;
                        return;
                    }
                    Some(bad) => {
                        self.char(char::REPLACEMENT_CHARACTER);
                        self.partial = pending[bad..].to_vec();
                    }
                },
            }
        }
    }

    fn feed_utf16(&mut self, bytes: &[u8], little: bool) {
        for &byte in bytes {
            self.raw += 1;
            let Some(first) = self.half.take() else {
                self.half = Some(byte);
                continue;
            };
            let unit = if little {
                u16::from_le_bytes([first, byte])
            } else {
                u16::from_be_bytes([first, byte])
            };
            let pair = self.surrogate.take();
            if pair.is_none() && (0xd800..0xdc00).contains(&unit) {
                self.surrogate = Some(unit);
                continue;
            }
            for decoded in char::decode_utf16(pair.into_iter().chain([unit])) {
                self.char(decoded.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
    }

    fn char(&mut self, c: char) {
        if c == '\n' {
            self.state = EscapeState::Ground;
            let line = self.line(true);
            self.done.push(line);
            self.cells.clear();
            self.lost = 0;
            self.column = 0;
            self.raw = 0;
            return;
        }
        match self.state {
            EscapeState::Ground => self.ground(c),
            EscapeState::Escape => self.escape(c),
            EscapeState::Designate => self.state = EscapeState::Ground,
            EscapeState::Csi => self.csi(c),
            EscapeState::String => match c {
                '\x1b' => self.state = EscapeState::StringEscape,
                '\x07' | '\x18' | '\x1a' | '\u{9c}' => self.state = EscapeState::Ground,
                _ => {}
            },
            EscapeState::StringEscape if c == '\\' => self.state = EscapeState::Ground,
            EscapeState::StringEscape => {
                // This is not the end of the string: the escape cuts it off and begins a new sequence.
                self.state = EscapeState::Escape;
                self.escape(c);
            }
        }
    }

    fn ground(&mut self, c: char) {
        match c {
            '\x1b' => self.state = EscapeState::Escape,
            '\r' => self.column = 0,
            '\x08' => self.column = self.column.saturating_sub(1),
            '\t' => self.print(c),
            '\0' if self.keeps_nul => self.print(c),
            '\u{9b}' => self.begin(EscapeState::Csi),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.state = EscapeState::String,
            '\u{feff}' if self.cells.is_empty() => {}
            c if c.is_control() => {}
            c => self.print(c),
        }
    }

    fn print(&mut self, c: char) {
        let cell = Cell {
            char: c,
            sgr: self.sgr,
        };
        if self.column < self.cells.len() {
            self.cells[self.column] = cell;
        } else if self.column < self.longest {
            let blank = Cell {
                char: ' ',
                sgr: Sgr::default(),
            };
            self.cells.resize(self.column, blank);
            self.cells.push(cell);
        } else {
            self.beyond += 1;
            self.lost = self.lost.max(self.beyond);
            return;
        }
        self.beyond = 0;
        self.column += 1;
    }

    fn escape(&mut self, c: char) {
        match c {
            '[' => self.begin(EscapeState::Csi),
            ']' | 'P' | 'X' | '^' | '_' => self.state = EscapeState::String,
            '\x20'..='\x2f' => self.state = EscapeState::Designate,
            '\x1b' => self.state = EscapeState::Escape,
            // It is not printable.
            _ => self.state = EscapeState::Ground,
        }
    }

    fn begin(&mut self, state: EscapeState) {
        self.parameters.clear();
        self.state = state;
    }

    fn csi(&mut self, c: char) {
        match c {
            '\x20'..='\x3f' => {
                if self.parameters.len() < MAX_PARAMETER_BYTES {
                    self.parameters.push(c as u8);
                }
            }
            '\x40'..='\x7e' => {
                self.state = EscapeState::Ground;
                self.control(c);
            }
            '\x1b' => self.state = EscapeState::Escape,
            '\x18' | '\x1a' => self.state = EscapeState::Ground,
            '\r' => self.column = 0,
            c if c.is_control() => {}
            c => {
                self.state = EscapeState::Ground;
                self.print(c);
            }
        }
    }

    /// Executes the control sequences that matter within a line.
    fn control(&mut self, last: char) {
        let number = || {
            let text = std::str::from_utf8(&self.parameters).ok()?;
            text.split(';').next()?.parse::<usize>().ok()
        };
        let count = number().unwrap_or(1).clamp(1, self.longest);
        match last {
            'm' if self.is_sgr() => self.sgr.apply(&self.parameters),
            'K' => match number().unwrap_or(0) {
                0 => self.erase(self.column),
                1 => self.blank(),
                2 => self.erase(0),
                _ => {}
            },
            'G' => self.column = count - 1,
            'C' => self.column = (self.column + count).min(self.longest),
            'D' => self.column = self.column.saturating_sub(count),
            _ => {}
        }
    }

    /// Returns true if the current sequence sets colours or styles: all its parameters were kept, and it is not a private
    /// sequence.
    fn is_sgr(&self) -> bool {
        let private = self
            .parameters
            .iter()
            .any(|byte| (b'<'..=b'?').contains(byte));
        self.parameters.len() < MAX_PARAMETER_BYTES && !private
    }

    /// Removes the characters of the line from `column` on.
    fn erase(&mut self, column: usize) {
        self.cells.truncate(column);
        (self.beyond, self.lost) = (0, 0);
    }

    /// Blanks the line from its start up to and including the cursor.
    fn blank(&mut self) {
        for cell in self.cells.iter_mut().take(self.column + 1) {
            *cell = Cell {
                char: ' ',
                sgr: Sgr::default(),
            };
        }
    }

    /// Returns the current line. If `whole` is true, appends a note about characters that were skipped.
    fn line(&self, whole: bool) -> Line {
        let mut text = String::with_capacity(self.cells.len());
        let mut spans: Vec<Span> = Vec::new();
        for cell in &self.cells {
            let start = text.len();
            text.push(cell.char);
            if cell.sgr.is_plain() {
                continue;
            }
            match spans.last_mut() {
                Some(span) if span.end == start && span.sgr == cell.sgr => span.end = text.len(),
                _ => spans.push(Span {
                    start,
                    end: text.len(),
                    sgr: cell.sgr,
                }),
            }
        }
        if whole && self.lost > 0 {
            text.push_str(&format!("… {} more characters", self.lost));
        }
        Line {
            text,
            spans,
            raw: self.raw,
        }
    }
}

#[cfg(test)]
mod tests;
