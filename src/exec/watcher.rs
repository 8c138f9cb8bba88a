//! A process that outlives this one, and then ends what this one left running.
//!
//! It holds one end of a pipe whose other end only this process has: however this process ends, SIGKILL
//! included, the pipe closes. It finds the commands by the marker in their environment, by the session
//! this process leads, and as descendants of those.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::SigSet;
use rustix::pipe::PipeFlags;

use super::children::{self, Kind};
use super::{helper, tree};

/// Told to the watcher where nothing is to be ended.
const RELEASE: u8 = b'r';
/// How long it goes on against processes that do not end.
const PATIENCE: Duration = Duration::from_secs(20);

/// This process's end of the pipe, and the watcher.
#[derive(Debug)]
pub(super) struct Watcher {
    pipe: File,
    child: Child,
}

impl Watcher {
    /// Starts the watcher of all processes whose marker holds `token`.
    pub(super) fn start(program: &Path, token: &str) -> io::Result<Self> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let mut command = Command::new(program);
        command
            .args([helper::WATCH, token, &session().to_string()])
            .env_clear()
            // A marker of no job: without one it would pass for a stray of some job.
            .env(tree::MARKER, "watcher")
            .current_dir("/")
            .process_group(0)
            .stdin(read)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = children::spawn(&mut command, Kind::Watcher)?;
        Ok(Self {
            pipe: File::from(write),
            child,
        })
    }

    /// Sends the watcher home and waits for it, blocking for half a second at most.
    pub(super) fn release(self) {
        let Self {
            mut pipe,
            mut child,
        } = self;
        // It fails where the watcher is gone already.
        let _ = pipe.write_all(&[RELEASE]);
        drop(pipe);
        let began = Instant::now();
        while child.try_wait().is_ok_and(|status| status.is_none())
            && began.elapsed() < Duration::from_millis(500)
        {
            std::thread::sleep(Duration::from_millis(2));
        }
        children::reap(&mut child);
    }
}

/// Returns the session that this process leads; 0 if it leads none.
fn session() -> i32 {
    let session = children::own_session();
    if session == children::own_pid() {
        session
    } else {
        0
    }
}

/// The watcher's own life: `TOKEN SESSION`, and the pipe as standard input.
pub(super) fn watch_main(args: &[OsString]) -> ExitCode {
    let token = args.first().and_then(|it| it.to_str());
    let session: Option<i32> = args.get(1).and_then(|it| it.to_str()?.parse().ok());
    let (Some(token), Some(session)) = (token.filter(|it| it.len() >= 8), session) else {
        return ExitCode::from(2);
    };
    // Away from whatever ends the process it watches: its group, its session, a shutdown's TERM.
    let _ = rustix::process::setsid();
    let _ = SigSet::all().thread_block();
    let mut said = Vec::new();
    let _ = io::stdin().lock().read_to_end(&mut said);
    if said.contains(&RELEASE) {
        return ExitCode::SUCCESS;
    }
    let session = (session > 0).then_some(session);
    let began = Instant::now();
    while !tree::end_marked(token, session) {
        if began.elapsed() > PATIENCE {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
