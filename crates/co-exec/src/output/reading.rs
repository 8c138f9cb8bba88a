//! The new output of a running command, as bounded text for a model.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::outcome::count_lines;
use crate::output::capture::{HeadAndTail, HeadAndTailSizes};
use crate::output::model::{self, ModelText};
use crate::output::reader::SharedOutput;
use crate::output::spill;
use crate::output::text::Encoding;
use crate::secrets::exposure::SecretWatch;

/// The output that a model has not read yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewOutput {
    /// Text that the command printed.
    pub text: String,
    /// Notes about missing output. They are separate from the text, because a command could print the same words.
    pub notes: Vec<String>,
}

/// The most bytes of an unfinished line that the next text for the model repeats. A longer line is not repeated.
const OPEN_LINE: usize = 4 << 10;

/// The output of a command, with the position up to which a model has read it.
#[derive(Debug)]
pub struct OutputReading {
    shared: Arc<SharedOutput>,
    /// The most bytes of text that a model gets at a time.
    max: usize,
    /// The path of the file with the whole output. The file exists once the output is long.
    spill: PathBuf,
    /// The largest size in bytes of the file with the output.
    cap: u64,
    /// The watch for secrets that the command may have printed.
    secrets: Option<SecretWatch>,
    place: Mutex<Position>,
}

/// The position up to which a model has read the output.
#[derive(Debug, Default, Clone, Copy)]
struct Position {
    /// The position at which the next text for the model starts. If the last line was unfinished and is not too long, this is the
    /// start of that line.
    at: u64,
    seen: u64,
    /// The number of lines of the output at the time when the model last read it; `None` if the output was withheld from the
    /// model.
    lines: Option<u64>,
}

impl OutputReading {
    pub(crate) fn new(shared: Arc<SharedOutput>, max: usize, spill: PathBuf, cap: u64) -> Self {
        Self {
            shared,
            max,
            spill,
            cap,
            secrets: None,
            place: Mutex::new(Position {
                lines: Some(0),
                ..Position::default()
            }),
        }
    }

    /// Sets the watch for secrets. Once a secret appears where the command can read it, the output is withheld.
    #[must_use]
    pub(crate) fn with_secrets(self, secrets: Option<SecretWatch>) -> Self {
        Self { secrets, ..self }
    }

    /// Returns the number of lines of the output when the model last read it, in words: `1 line`. An unfinished line counts as a
    /// line.
    pub fn amount(&self) -> String {
        let lines = self.place.lock().lines;
        lines.map_or_else(|| "its output is withheld".to_owned(), count_lines)
    }

    /// Returns the whole output so far, if co has dropped no part of it. Otherwise returns the beginning that co has kept.
    pub fn beginning(&self) -> Vec<u8> {
        let HeadAndTail {
            mut head,
            tail,
            bytes,
            ..
        } = self.shared.capture().head_and_tail();
        if (head.len() + tail.len()) as u64 == bytes {
            head.extend(tail);
        }
        head
    }

    /// Returns the kept last bytes of the output so far.
    pub fn end(&self) -> Vec<u8> {
        let HeadAndTail { head, tail, .. } = self.shared.capture().head_and_tail();
        if tail.is_empty() { head } else { tail }
    }

    /// Returns whether the output has ended.
    pub fn is_over(&self) -> bool {
        self.shared.is_over()
    }

    /// Waits until there is new output and then no more comes for the time `quiet`, or until the output has ended.
    pub async fn settled(&self, quiet: Duration) {
        let seen = self.place.lock().seen;
        if !self.wait_beyond(seen).await {
            return;
        }
        loop {
            let bytes = self.shared.capture().bytes();
            match tokio::time::timeout(quiet, self.wait_beyond(bytes)).await {
                Ok(true) => {}
                Ok(false) | Err(_) => return,
            }
        }
    }

    /// Waits until the output has more than `bytes` bytes. Returns false if the output ends before that.
    async fn wait_beyond(&self, bytes: u64) -> bool {
        let pending = |_over| self.shared.capture().bytes() > bytes;
        self.shared.until(pending).await
    }

    /// Returns the output since the last call, or the note that it is withheld. Returns `None` if there is no new output.
    ///
    /// Blocks on files.
    pub fn next(&self) -> Option<NewOutput> {
        let mut place = self.place.lock();
        let end = self.shared.capture().bytes();
        (end > place.seen).then(|| self.read(&mut place))
    }

    /// Returns the output from line `line` on, counted from 0. Returns `None` if there is no such line. The next call of
    /// [`next`](Self::next) continues after the returned text.
    ///
    /// Blocks on files.
    pub fn from_line(&self, line: u64) -> Option<NewOutput> {
        let mut place = self.place.lock();
        let (at, first) = {
            let capture = self.shared.capture();
            match capture.lines().saturating_sub(line) {
                0 => return None,
                _ if line == 0 => (0, 0),
                lines => capture.first_of(lines),
            }
        };
        place.at = at;
        let mut new = self.read(&mut place);
        if first > line {
            let (last, all) = (first - 1, self.file_suffix());
            let note = format!("lines {line} to {last} are no longer at hand{all}");
            new.notes.insert(0, note);
        }
        Some(new)
    }

    /// Returns a sentence about the file with the output, if the file exists.
    fn file_note(&self) -> Option<String> {
        if self.is_over() {
            return self.shared.file_note().map(str::to_owned);
        }
        let bytes = self.shared.capture().bytes();
        let kept = self.spill.exists();
        kept.then(|| spill::note_so_far(&self.spill, bytes, self.cap))
    }

    fn file_suffix(&self) -> String {
        self.file_note()
            .map_or_else(String::new, |place| format!("; {place}"))
    }

    fn read(&self, place: &mut Position) -> NewOutput {
        let (fresh, end, lines, share, encoding, binary) = {
            let capture = self.shared.capture();
            let (end, lines) = (capture.bytes(), capture.lines());
            let fresh = capture.range(place.at, end);
            let share = capture.share();
            let (encoding, binary) = (capture.encoding(), capture.binary());
            (fresh, end, lines, share, encoding, binary)
        };
        let lost = end - place.at - fresh.len() as u64;
        *place = Position {
            at: next_start(&fresh, end, encoding),
            seen: end,
            lines: Some(lines),
        };
        // Looked for after the output was taken: no secret in it appeared later.
        let withheld = |it: &SecretWatch| it.withheld(Instant::now());
        if let Some(withheld) = self.secrets.as_ref().and_then(withheld) {
            place.lines = None;
            return NewOutput {
                text: String::new(),
                notes: vec![withheld],
            };
        }
        let ends = ends(fresh, share, encoding, binary);
        let file = self.file_note();
        let ModelText { text, left_out } = model::view(&ends, self.max, file.as_deref());
        let lost = (lost > 0).then(|| {
            let all = self.file_suffix();
            format!("{lost} bytes before this output are no longer at hand{all}")
        });
        NewOutput {
            text,
            notes: lost.into_iter().chain(left_out).collect(),
        }
    }
}

/// Returns the position at which the next text for the model starts, after the text `fresh`, which ends at the position `end`. An
/// unfinished last line is repeated if it has at most [`OPEN_LINE`] bytes.
fn next_start(fresh: &[u8], end: u64, encoding: Encoding) -> u64 {
    let open = memchr::memrchr(b'\n', fresh).map_or(fresh.len(), |at| fresh.len() - at - 1);
    let at = if open > OPEN_LINE {
        end
    } else {
        end - open as u64
    };
    match encoding {
        Encoding::Utf8 => at,
        // The other half of the UTF-16 unit that ended the line.
        Encoding::Utf16 { .. } => at.next_multiple_of(2).min(end),
    }
}

fn ends(fresh: Vec<u8>, share: HeadAndTailSizes, encoding: Encoding, binary: bool) -> HeadAndTail {
    let bytes = fresh.len() as u64;
    let open = fresh.last().is_some_and(|last| *last != b'\n');
    let lines = memchr::memchr_iter(b'\n', &fresh).count() as u64 + u64::from(open);
    let (head, tail) = if fresh.len() <= share.sum() {
        (fresh, Vec::new())
    } else {
        let tail = &fresh[fresh.len() - share.tail..];
        let start = memchr::memchr(b'\n', tail).map_or(0, |at| at + 1);
        let start = match encoding {
            Encoding::Utf8 => start,
            Encoding::Utf16 { .. } => start.next_multiple_of(2).min(tail.len()),
        };
        (fresh[..share.head].to_vec(), tail[start..].to_vec())
    };
    HeadAndTail {
        head,
        tail,
        bytes,
        lines,
        binary,
        encoding,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn reading(max: usize) -> OutputReading {
        let shared = Arc::new(SharedOutput::new(1_000, max));
        OutputReading::new(shared, max, "/nonexistent/spill".into(), 0)
    }

    fn print(reading: &OutputReading, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let read = |space: &mut [u8]| io::Read::read(&mut bytes, space);
            reading.shared.capture().fill(read).unwrap();
        }
    }

    /// Returns new output that is whole.
    fn whole(new: Option<NewOutput>) -> String {
        let NewOutput { text, notes } = new.unwrap();
        assert_eq!(notes, [""; 0]);
        text
    }

    fn next(reading: &OutputReading) -> String {
        whole(reading.next())
    }

    #[test]
    fn each_piece_is_what_is_new() {
        let reading = reading(10_000);
        assert_eq!(reading.next(), None);
        print(&reading, b"one\ntwo\n");
        assert_eq!(next(&reading), "one\ntwo\n");
        assert_eq!(reading.next(), None);
        print(&reading, b"three\r\n");
        assert_eq!(next(&reading), "three\n");
        assert_eq!(reading.amount(), "3 lines");
    }

    #[test]
    fn a_line_that_had_not_ended_is_told_again_with_its_end() {
        let reading = reading(10_000);
        print(&reading, "a\nName \u{6f22}".as_bytes());
        assert_eq!(next(&reading), "a\nName \u{6f22}");
        print(&reading, &[0xe6]);
        assert_eq!(next(&reading), "Name \u{6f22}\u{fffd}");
        print(&reading, &[0xbc, 0xa2, b'\n']);
        assert_eq!(next(&reading), "Name \u{6f22}\u{6f22}\n");
        print(&reading, b"10 %\r20 %");
        assert_eq!(next(&reading), "20 %");
        print(&reading, b"\r\x1b[2K\x1b[31mdone\x1b[m\n");
        assert_eq!(next(&reading), "done\n");
    }

    #[test]
    fn any_line_can_be_gone_back_to() {
        let reading = reading(10_000);
        assert_eq!(reading.from_line(0), None);
        print(&reading, b"a\nb\nc");
        assert_eq!(next(&reading), "a\nb\nc");
        assert_eq!(whole(reading.from_line(1)), "b\nc");
        assert_eq!(whole(reading.from_line(0)), "a\nb\nc");
        assert_eq!(reading.from_line(3), None);
        assert_eq!(reading.next(), None);
    }

    #[test]
    fn much_is_cut_and_what_is_lost_is_said() {
        let reading = reading(2_000);
        let lines: String = (0..200_000).map(|n| format!("{n} {n}\n")).collect();
        print(&reading, lines.as_bytes());
        let NewOutput { text, notes } = reading.next().unwrap();
        assert!(text.len() <= 2_000, "{}", text.len());
        assert!(!text.contains("no longer at hand"), "{text}");
        assert!(text.ends_with("199999 199999\n"), "{text}");
        let [lost, left_out] = &notes[..] else {
            panic!("{notes:?}");
        };
        assert!(lost.ends_with("no longer at hand"), "{lost}");
        assert!(left_out.starts_with("co left out "), "{left_out}");
        assert_eq!(reading.next(), None);
    }

    #[test]
    fn lines_that_are_gone_are_named() {
        let reading = reading(4_000_000);
        let lines: String = (0..400_000).map(|n| format!("{n} {n}\n")).collect();
        print(&reading, lines.as_bytes());
        let NewOutput { text, notes } = reading.from_line(1).unwrap();
        let last = notes[0].strip_prefix("lines 1 to ").unwrap();
        let (last, note) = last.split_once(' ').unwrap();
        let last: u64 = last.parse().unwrap();
        assert_eq!(note, "are no longer at hand");
        let next = last + 1;
        assert!(
            text.starts_with(&format!("{next} {next}\n")),
            "{}",
            &text[..40]
        );
        assert_eq!(whole(reading.from_line(399_999)), "399999 399999\n");
    }

    #[test]
    fn sixteen_bit_text_stays_whole() {
        let reading = reading(10_000);
        let units = |text: &str| {
            text.encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<_>>()
        };
        print(&reading, &[0xff, 0xfe]);
        print(&reading, &units("a\nb"));
        assert!(next(&reading).ends_with("a\nb"));
        print(&reading, &units("c\n"));
        assert_eq!(next(&reading), "bc\n");
    }
}
