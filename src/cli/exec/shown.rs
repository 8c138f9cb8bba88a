//! Writes what a run prints, as it prints it.

use std::io::{self, Write};
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use co_exec::{Patch, Screen};

/// Writes on a thread of its own: who is slow to read must hold up neither the command's time nor a signal.
///
/// First what `screen` shows as it goes, if there is one, then the last line: on standard error beside a screen,
/// else on standard output. What it returns is told when all of it is written, or that it could not be.
pub(super) fn show(
    screen: Option<Arc<Screen>>,
    last: oneshot::Receiver<String>,
) -> io::Result<oneshot::Receiver<io::Result<()>>> {
    let (over, end) = oneshot::channel();
    let runtime = Handle::current();
    let thread = std::thread::Builder::new().name("show".to_owned());
    thread.spawn(move || {
        let shown = screen.as_ref().map_or(Ok(()), |screen| {
            let mut shown = LinePrinter::default();
            while runtime.block_on(screen.changed()) {
                // What cannot be written ends the showing; the command goes on to its end.
                if let Some(patch) = screen.take() {
                    shown.write(&patch, &mut io::stdout().lock())?;
                }
            }
            shown.end(&mut io::stdout().lock())
        });
        let ended = match (last.blocking_recv(), screen) {
            // Nobody is left to whom it could be told that standard error is not to be written to.
            (Ok(line), Some(_)) => {
                let _ = writeln!(io::stderr().lock(), "{line}");
                Ok(())
            }
            (Ok(line), None) => writeln!(io::stdout().lock(), "{line}"),
            (Err(_), _) => Ok(()),
        };
        let written = shown.and(ended);
        // That nobody reads any more is no fault of anybody's.
        let closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        let _ =
            over.send(written.or_else(|error| if closed(&error) { Ok(()) } else { Err(error) }));
    })?;
    Ok(end)
}

/// What was written of a run; of a flood each screenful as it passes.
#[derive(Debug, Default)]
struct LinePrinter {
    /// The line of the run that the cursor is on, and what is written of it.
    line: u64,
    text: Option<String>,
}

impl LinePrinter {
    fn write(&mut self, patch: &Patch, out: &mut impl Write) -> io::Result<()> {
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
        let mut shown = LinePrinter::default();
        let mut out = Vec::new();
        for (skipped, from, lines) in [
            (0, 0, &["a"][..]),
            (0, 1, &["b"]),
            (0, 1, &["bc", "d"]),
            (7, 0, &["x", "y"]),
            (0, 0, &["a", "bc", "d", "e", "e", "e", "e", "x", "y", "z"]),
        ] {
            let lines = lines.iter().map(|&it| it.to_owned()).collect();
            let patch = Patch {
                skipped,
                from,
                lines,
                styles: Vec::new(),
            };
            shown.write(&patch, &mut out).unwrap();
        }
        shown.end(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "a\nbc\nd\n[4 lines not shown]\nx\ny\nz\n");
    }
}
