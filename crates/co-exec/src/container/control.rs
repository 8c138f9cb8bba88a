//! Reads the reports of the script that runs a command in a container. The script writes them to standard error, mixed with the
//! engine's own messages.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use crate::outcome::BackgroundProcess;

/// The most bytes of the engine's messages that are kept.
const MAX_MESSAGE_BYTES: usize = 4_096;

/// The reader of the script's reports about one command. Clones share the reports.
#[derive(Debug, Clone)]
pub(crate) struct Control {
    reports: Arc<Mutex<Reports>>,
    /// Changes with each report. The channel closes when no more reports will come.
    changed: watch::Receiver<()>,
}

/// The reports that the script has sent so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reports {
    pub(crate) started: bool,
    /// The exit status of the command, once it has ended.
    pub(crate) code: Option<i32>,
    /// The processes that the command left running.
    pub(crate) left: Vec<BackgroundProcess>,
    /// True if the kernel killed a process of the container for lack of memory while the command ran.
    pub(crate) out_of_memory: bool,
    /// The programs that the image lacks.
    pub(crate) missing: Vec<String>,
    /// The lines on standard error that are not reports of the script: messages of the engine.
    pub(crate) words: String,
}

impl Reports {
    fn add(&mut self, line: &str) {
        let mut words = line.split(' ');
        let report = match words.next() {
            Some("co") => words.next(),
            _ => None,
        };
        let rest: Vec<&str> = words.collect();
        match (report, &rest[..]) {
            (Some("start"), []) => self.started = true,
            (Some("memory"), []) => self.out_of_memory = true,
            (Some("missing"), [program]) => self.missing.push((*program).to_owned()),
            (Some("end"), [code]) => self.code = code.parse().ok(),
            (Some("left"), [pid, name @ ..]) => self.left.extend(background(pid, name)),
            _ if self.words.len() < MAX_MESSAGE_BYTES => {
                self.words.push_str(line);
                self.words.push('\n');
            }
            _ => {}
        }
    }
}

fn background(pid: &str, name: &[&str]) -> Option<BackgroundProcess> {
    Some(BackgroundProcess {
        pid: pid.parse().ok()?,
        name: name.join(" "),
    })
}

/// Returns the processes that the lines of the script name.
pub(super) fn processes(lines: &str) -> Vec<BackgroundProcess> {
    let mut reports = Reports::default();
    lines.lines().for_each(|line| reports.add(line));
    reports.left
}

impl Control {
    /// Starts a task that reads the reports from a descriptor.
    pub(crate) fn read(fd: AsyncFd<OwnedFd>) -> Self {
        let (told, changed) = watch::channel(());
        let reports: Arc<Mutex<Reports>> = Arc::default();
        let shared = Arc::clone(&reports);
        tokio::spawn(async move {
            let mut line = Vec::new();
            let mut buffer = [0; 4_096];
            while let Some(count) = next(&fd, &mut buffer).await {
                for byte in &buffer[..count] {
                    if *byte != b'\n' {
                        if line.len() < MAX_MESSAGE_BYTES {
                            line.push(*byte);
                        }
                        continue;
                    }
                    shared.lock().add(String::from_utf8_lossy(&line).trim_end());
                    line.clear();
                }
                let _ = told.send(());
            }
            if !line.is_empty() {
                shared.lock().add(String::from_utf8_lossy(&line).trim_end());
            }
        });
        Self { reports, changed }
    }

    /// Returns the reports so far.
    pub(crate) fn reports(&self) -> Reports {
        self.reports.lock().clone()
    }

    /// Waits until the command has started. Returns false if it did not start.
    pub(crate) async fn started(&self) -> bool {
        self.wait(|reports| reports.started).await
    }

    /// Waits until the command has ended. Returns false if the script did not report the end.
    pub(crate) async fn ended(&self) -> bool {
        self.wait(|reports| reports.code.is_some()).await
    }

    async fn wait(&self, done: impl Fn(&Reports) -> bool) -> bool {
        let mut changed = self.changed.clone();
        loop {
            if done(&self.reports.lock()) {
                return true;
            }
            if changed.changed().await.is_err() {
                return done(&self.reports.lock());
            }
        }
    }
}

/// Reads into the buffer. Returns the number of bytes read, or `None` at the end of the stream.
async fn next(fd: &AsyncFd<OwnedFd>, buffer: &mut [u8]) -> Option<usize> {
    loop {
        let mut ready = fd.readable().await.ok()?;
        match rustix::io::read(fd.get_ref(), &mut *buffer) {
            Ok(0) => return None,
            Ok(count) => return Some(count),
            Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_told_from_the_engines_words() {
        let mut reports = Reports::default();
        for line in [
            "co start",
            "co missing bash",
            "Error: no such thing",
            "co left 12 my name",
            "co left x y",
            "co memory",
            "co end 124",
            "co end",
        ] {
            reports.add(line);
        }
        let expected = Reports {
            started: true,
            code: Some(124),
            left: vec![BackgroundProcess {
                pid: 12,
                name: "my name".to_owned(),
            }],
            out_of_memory: true,
            missing: vec!["bash".to_owned()],
            words: "Error: no such thing\nco end\n".to_owned(),
        };
        assert_eq!(reports, expected);
    }
}
