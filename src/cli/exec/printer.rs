//! Prints the output of a command while the command runs.

use std::io::{self, Write};
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::terminal;
use co_exec::{Screen, ScreenPatch};

/// The texts to print after the output.
pub(super) struct Ending {
    /// A line for standard error. It is printed first.
    pub(super) status: Option<String>,
    /// The text for standard output.
    pub(super) text: String,
}

/// Prints on a separate thread, so that a slow reader of the output delays neither the time-out nor signals.
///
/// If `screen` is given, prints the content of the screen as it changes. Then prints the texts of the [`Ending`]. The returned
/// channel gets the result when everything is written.
pub(super) fn print(
    screen: Option<Arc<Screen>>,
    last: oneshot::Receiver<Ending>,
) -> io::Result<oneshot::Receiver<io::Result<()>>> {
    let (over, end) = oneshot::channel();
    let runtime = Handle::current();
    let thread = std::thread::Builder::new().name("show".to_owned());
    thread.spawn(move || {
        let shown = screen.map_or(Ok(()), |screen| {
            let mut printer = LinePrinter::default();
            while runtime.block_on(screen.changed()) {
                // A failed write ends the printing; the command goes on.
                let _free = terminal::lock();
                if let Some(patch) = screen.take() {
                    printer.write(&patch, &mut io::stdout().lock())?;
                }
            }
            printer.end(&mut io::stdout().lock())
        });
        let ended = last.blocking_recv().map_or(Ok(()), |ending| {
            if let Some(line) = ending.status {
                // If standard error is closed, nobody can be told.
                let _ = writeln!(io::stderr().lock(), "{line}");
            }
            let mut out = io::stdout().lock();
            out.write_all(ending.text.as_bytes())?;
            out.flush()
        });
        // This fails if nobody waits any more.
        let _ = over.send(shown.and(ended));
    })?;
    Ok(end)
}

/// Prints each line once. If the output is too fast, leaves lines out and prints their number.
#[derive(Debug, Default)]
struct LinePrinter {
    /// The number of the line with the cursor.
    line: u64,
    text: Option<String>,
}

impl LinePrinter {
    fn write(&mut self, patch: &ScreenPatch, out: &mut impl Write) -> io::Result<()> {
        for (number, line) in (patch.skipped + patch.from as u64..).zip(&patch.lines) {
            if number > self.line && self.text.take().is_some() {
                writeln!(out)?;
                self.line += 1;
            }
            if number > self.line {
                writeln!(out, "[{} lines not shown]", number - self.line)?;
                self.line = number;
            }
            if number < self.line {
                continue;
            }
            match self
                .text
                .as_ref()
                .map(|text| line.strip_prefix(text.as_str()))
            {
                None => write!(out, "{line}")?,
                Some(Some(more)) => write!(out, "{more}")?,
                Some(None) => write!(out, "\r{line}\x1b[K")?,
            }
            self.text = Some(line.clone());
        }
        out.flush()
    }

    fn end(&mut self, out: &mut impl Write) -> io::Result<()> {
        match self.text.take() {
            Some(_) => writeln!(out),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_each_line_once() {
        let mut printer = LinePrinter::default();
        let mut out = Vec::new();
        for (skipped, from, lines) in [
            (0, 0, &["a"][..]),
            (0, 1, &["b"]),
            (0, 1, &["bc", "d"]),
            (7, 0, &["x", "y"]),
            (0, 0, &["a", "bc", "d", "e", "e", "e", "e", "x", "y", "z"]),
        ] {
            let lines = lines.iter().map(|&it| it.to_owned()).collect();
            let patch = ScreenPatch {
                skipped,
                from,
                lines,
                styles: Vec::new(),
            };
            printer.write(&patch, &mut out).unwrap();
        }
        printer.end(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "a\nbc\nd\n[4 lines not shown]\nx\ny\nz\n");
    }
}
