//! Asks questions on the terminal.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::oneshot;

use crate::network::{HostAsker, named};
use co_policy::HostRules;
use co_proxy::Target;

/// The interval between two checks for the withdrawal of a question.
const LOOK_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// A lock that a thread holds while it writes to the terminal, and while a question is on the terminal. So the output of a
/// command cannot change the question.
static TERMINAL: Mutex<()> = Mutex::new(());

/// Waits until no question is on the terminal. No question appears until the returned guard is dropped.
pub(super) fn lock() -> MutexGuard<'static, ()> {
    TERMINAL.lock()
}

/// Asks about hosts on the terminal. Refuses them if there is no terminal.
pub(super) struct TerminalAsker {
    pub(super) rules: HostRules,
    pub(super) is_terminal: bool,
}

#[async_trait]
impl HostAsker for TerminalAsker {
    async fn rules(&self) -> Result<HostRules, String> {
        Ok(self.rules.clone())
    }

    async fn ask(&self, targets: &[Target]) -> Result<(), String> {
        if !self.is_terminal {
            return Err("no --allow-host allows it".to_owned());
        }
        let named: Vec<_> = targets.iter().map(named).collect();
        let question = format!(
            "\nthe command wants to reach {}: allow? [y/N] ",
            named.join(", ")
        );
        match yes(&question).await {
            true => Ok(()),
            false => Err("you refused it".to_owned()),
        }
    }
}

/// Withdraws a question on drop: sets a flag that the thread of the question checks.
struct Withdrawal(Arc<AtomicBool>);

impl Drop for Withdrawal {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns true if a person at a terminal can answer questions.
pub(super) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question on the terminal. Nothing else is printed before the answer. If the returned future is dropped, later input is
/// not read.
pub(super) async fn yes(question: &str) -> bool {
    let question = question.to_owned();
    let (answer, answered) = oneshot::channel();
    let withdrawn = Arc::<AtomicBool>::default();
    let _withdrawal = Withdrawal(Arc::clone(&withdrawn));
    // A separate thread reads the answer, so the process can end while the thread still waits.
    let reading = std::thread::Builder::new().spawn(move || {
        let _quiet = lock();
        // What was typed ahead was typed for the command, or for the shell.
        let _dropped = tcflush(io::stdin(), QueueSelector::IFlush);
        // If standard error is closed, nobody is there to answer.
        let _shown = write!(io::stderr().lock(), "{question}");
        // Nobody waits any more after a signal.
        let _gone =
            answer.send(line(&withdrawn).is_some_and(|line| {
                matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
            }));
    });
    reading.is_ok() && answered.await.unwrap_or(false)
}

/// Reads a line of standard input. Returns `None` if the question is withdrawn first.
fn line(withdrawn: &AtomicBool) -> Option<String> {
    let input = io::stdin();
    loop {
        if withdrawn.load(Ordering::Relaxed) {
            return None;
        }
        let mut polled = [PollFd::new(&input, PollFlags::IN)];
        match rustix::event::poll(&mut polled, Some(&LOOK_INTERVAL)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => break,
            Err(_) => return None,
        }
    }
    let mut line = String::new();
    input.lock().read_line(&mut line).ok()?;
    Some(line)
}
