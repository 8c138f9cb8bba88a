//! Reads the output of a command as soon as it comes, into a bounded capture and a spill file.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::output::capture::{BLOCK_BYTES, Capture};
use crate::output::spill::{FinishedFile, Spill};
use crate::process::pty::RETRY_INTERVAL;
use crate::settings::ExecSettings;

/// The most bytes of output that are kept without a spill file.
const MAX_UNSPILLED_BYTES: u64 = 16 << 10;
/// The most reads before the reader yields to other tasks: about a millisecond of a flood.
const MAX_READS_AT_ONCE: usize = 16;

/// The output of a command, which its reader shares with the code that shows it.
#[derive(Debug)]
pub(crate) struct SharedOutput {
    capture: Mutex<Capture>,
    over: AtomicBool,
    changed: Notify,
    flood: Notify,
    /// A sentence about the output file. It is set when the output ends.
    place: OnceLock<String>,
}

impl SharedOutput {
    pub(crate) fn new(keep: usize, max: usize) -> Self {
        Self {
            capture: Mutex::new(Capture::new(keep, max)),
            over: AtomicBool::new(false),
            changed: Notify::new(),
            flood: Notify::new(),
            place: OnceLock::new(),
        }
    }

    pub(crate) fn capture(&self) -> MutexGuard<'_, Capture> {
        self.capture.lock()
    }

    /// Returns whether the output has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Waits until `pending` returns true. The argument of `pending` is true if the output has ended. Returns false if the output
    /// ends and `pending` still returns false.
    pub(crate) async fn until(&self, pending: impl Fn(bool) -> bool) -> bool {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered first, so that a later change wakes this task up.
            changed.as_mut().enable();
            let over = self.is_over();
            if pending(over) {
                return true;
            }
            if over {
                return false;
            }
            changed.await;
        }
    }

    /// Marks the output as ended.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Sets the sentence about the output file. Call it before [`end`](Self::end).
    pub(crate) fn set_file_note(&self, place: String) {
        // It is set once.
        let _ = self.place.set(place);
    }

    /// Returns the sentence about the output file. Returns `None` if the output has not ended, or has no file.
    pub(crate) fn file_note(&self) -> Option<&str> {
        self.place.get().map(String::as_str)
    }

    /// Waits until the command has printed more than the setting `flood_max` allows.
    pub(crate) async fn flooded(&self) {
        self.flood.notified().await;
    }
}

/// Reads the output of one command.
pub(crate) struct OutputReader {
    pub(crate) output: AsyncFd<OwnedFd>,
    pub(crate) shared: Arc<SharedOutput>,
    pub(crate) settings: Arc<ExecSettings>,
    /// The name of the spill file, without its suffix.
    pub(crate) name: String,
    pub(crate) spill: Option<Spill>,
    /// The token that stops the reading before the output ends.
    pub(crate) stop: CancellationToken,
}

/// The result of one read.
enum Step {
    More(Option<Vec<u8>>),
    Nothing,
    End,
}

impl OutputReader {
    /// Reads until the output ends, or `stop` is cancelled.
    pub(crate) async fn run(&mut self) {
        loop {
            let stop = self.stop.clone();
            let closed = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                ready = self.output.readable() => match ready {
                    Ok(ready) => ready.ready().is_read_closed(),
                    Err(_) => return,
                },
            };
            for _ in 0..MAX_READS_AT_ONCE {
                match self.step() {
                    Step::More(None) => {}
                    Step::More(Some(bytes)) => tokio::select! {
                        biased;
                        // A slow disk must not delay the end.
                        () = stop.cancelled() => return,
                        () = self.spill(bytes) => {}
                    },
                    // A terminal that a program has opened again always counts as ready.
                    Step::Nothing if closed => {
                        tokio::select! {
                            () = stop.cancelled() => return,
                            () = tokio::time::sleep(RETRY_INTERVAL) => break,
                        }
                    }
                    Step::Nothing => break,
                    Step::End => return,
                }
            }
            tokio::task::yield_now().await;
        }
    }

    fn step(&mut self) -> Step {
        let mut capture = self.shared.capture();
        let before = capture.bytes();
        let output = &self.output;
        let filled = capture.fill(|space| {
            let read = |fd: &OwnedFd| Ok(rustix::io::read(fd, space)?);
            output.try_io(tokio::io::Interest::READABLE, read)
        });
        let fresh = match filled {
            Ok([]) => return Step::End,
            Ok(fresh) => fresh,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Step::Nothing,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Step::More(None),
            Err(_) => return Step::End,
        };
        let after = before + fresh.len() as u64;
        let copy = match &self.spill {
            Some(_) => Some(fresh.to_vec()),
            // From here on, the capture or the screen may lose bytes.
            None if self.settings.spill_max > 0
                && (after > MAX_UNSPILLED_BYTES
                    || capture.lines() > self.settings.screen_lines as u64) =>
            {
                Some(capture.range(0, after))
            }
            None => None,
        };
        drop(capture);
        self.shared.changed.notify_waiters();
        if before <= self.settings.flood_max && after > self.settings.flood_max {
            self.shared.flood.notify_one();
        }
        Step::More(copy)
    }

    async fn spill(&mut self, bytes: Vec<u8>) {
        let settings = &self.settings;
        let start = || Spill::start(&settings.spill_dir, &self.name, settings.spill_max);
        self.spill.get_or_insert_with(start).write(bytes).await;
    }

    /// Finishes the output file, and returns it. If there is no file yet and `needed` is true, creates it.
    pub(crate) async fn finish(&mut self, needed: bool) -> Option<FinishedFile> {
        if self.spill.is_none() && needed && self.settings.spill_max > 0 {
            let all = {
                let capture = self.shared.capture();
                capture.range(0, capture.bytes())
            };
            self.spill(all).await;
        }
        let total = self.shared.capture().bytes();
        self.spill.take()?.finish(total).await
    }

    /// Reads and drops the rest of the output, so that remaining processes can continue to write to the pipe.
    pub(crate) async fn discard(&mut self) {
        let mut space = vec![0; BLOCK_BYTES];
        loop {
            let Ok(mut ready) = self.output.readable().await else {
                return;
            };
            let closed = ready.ready().is_read_closed();
            match ready.try_io(|fd| Ok(rustix::io::read(fd, &mut space[..])?)) {
                Ok(Ok(0) | Err(_)) => return,
                Ok(Ok(_)) => tokio::task::yield_now().await,
                // As above: the terminal counts as ready although it has no output.
                Err(_) if closed => tokio::time::sleep(RETRY_INTERVAL).await,
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use tokio::io::Interest;

    use super::*;
    use crate::process::pty::TerminalSize;
    use crate::process::{pty, streams};

    /// Returns the reader of a terminal after these events: all programs closed the terminal, the reader noticed this, and a
    /// program opened the terminal again.
    async fn reopened() -> (OutputReader, OwnedFd) {
        let (terminal, own) = pty::open(TerminalSize {
            columns: 80,
            rows: 24,
        })
        .unwrap();
        let flags = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY;
        rustix::io::ioctl_fionbio(&own, true).unwrap();
        let output = streams::register(own, Interest::READABLE).unwrap();
        drop(terminal);
        let seen = output.readable().await.unwrap();
        assert!(seen.ready().is_read_closed());
        drop(seen);
        let program = rustix::pty::ioctl_tiocgptpeer(&output, flags).unwrap();
        let reader = OutputReader {
            output,
            shared: Arc::new(SharedOutput::new(1000, 0)),
            settings: Arc::new(ExecSettings::new(Path::new("/nonexistent").to_owned())),
            name: "job".to_owned(),
            spill: None,
            stop: CancellationToken::new(),
        };
        (reader, program)
    }

    /// Returns whether other tasks of this thread ran beside `task`, which is dropped in any case.
    fn others_go_on(task: impl AsyncFnOnce(OutputReader) + Send + 'static) -> bool {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let (reader, _program) = reopened().await;
                let moment = tokio::time::sleep(Duration::from_millis(100));
                tokio::select! {
                    biased;
                    () = task(reader) => {}
                    () = moment => {}
                }
            });
            tell.send(())
        });
        told.recv_timeout(Duration::from_secs(20)).is_ok()
    }

    #[test]
    fn a_terminal_that_was_opened_again_holds_up_nobody() {
        assert!(others_go_on(async |mut reader| reader.discard().await));
        assert!(others_go_on(async |mut reader| reader.run().await));
    }
}
