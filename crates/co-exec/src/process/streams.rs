//! Opens the standard streams of a command.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;

use rustix::fs::MemfdFlags;
use rustix::pipe::PipeFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;

use crate::process::pty::{self, TerminalSize};

/// The kind of a command's standard streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Streams {
    /// Standard input is a text that is known at the start. Standard output and standard error share one pipe.
    #[default]
    Whole,
    /// Standard input is a pipe that stays open until the caller closes it. Standard output and standard error share one pipe.
    Open,
    /// All streams are a terminal of this size.
    Terminal(TerminalSize),
    /// Standard input and standard output are pipes for the caller, which speaks a protocol with the program. co records the
    /// standard error as the command's output.
    Pipes,
}

/// The caller's ends of the pipes for [`Streams::Pipes`].
#[derive(Debug)]
pub struct CommandPipes {
    pub input: pipe::Sender,
    pub output: pipe::Receiver,
}

/// Both ends of all streams: those for the command and those for this process.
pub(crate) struct StreamEnds {
    pub(crate) stdin: OwnedFd,
    /// The command's standard output, and also its standard error if `error` is `None`.
    pub(crate) write: OwnedFd,
    /// The command's standard error, if it has its own pipe.
    pub(crate) error: Option<OwnedFd>,
    /// The end from which this process reads the recorded output.
    pub(crate) output: OwnedFd,
    /// The end to which this process writes standard input. `None` if standard input does not stay open.
    pub(crate) input: Option<OwnedFd>,
    /// The caller's ends of [`Streams::Pipes`]: of standard input, and of standard output.
    pub(crate) pipes: Option<(OwnedFd, OwnedFd)>,
}

/// Opens the streams. `text` is the complete standard input for [`Streams::Whole`].
pub(crate) fn open(streams: Streams, text: Option<&[u8]>) -> io::Result<StreamEnds> {
    if let Streams::Terminal(size) = streams {
        let (terminal, own) = pty::open(size)?;
        return Ok(StreamEnds {
            stdin: terminal.try_clone()?,
            write: terminal,
            error: None,
            input: Some(own.try_clone()?),
            output: own,
            pipes: None,
        });
    }
    let (output, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    if streams == Streams::Pipes {
        let (stdin, own_input) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (own_output, stdout) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        return Ok(StreamEnds {
            stdin,
            write: stdout,
            error: Some(write),
            output,
            input: None,
            pipes: Some((own_input, own_output)),
        });
    }
    let (stdin, input) = if streams == Streams::Open {
        let (read, input) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        (read, Some(input))
    } else {
        (stdin_file(text)?, None)
    };
    Ok(StreamEnds {
        stdin,
        write,
        error: None,
        output,
        input,
        pipes: None,
    })
}

impl CommandPipes {
    /// Registers the caller's ends with the tokio runtime.
    pub(crate) fn new((input, output): (OwnedFd, OwnedFd)) -> io::Result<Self> {
        Ok(Self {
            input: pipe::Sender::from_owned_fd(input)?,
            output: pipe::Receiver::from_owned_fd(output)?,
        })
    }
}

/// Registers a descriptor with the tokio runtime.
#[expect(unsafe_code, reason = "the safe forms are deprecated")]
pub(crate) fn register(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open, and the same descriptor, until the `AsyncFd` that owns it is dropped.
    let registered = unsafe { AsyncFd::register_with_interest(fd, interest) };
    registered.map_err(|error| error.into_parts().1)
}

/// Opens `/dev/null`.
///
/// # Errors
/// `/dev/null` does not exist, as in an incomplete root directory.
pub(crate) fn null() -> io::Result<File> {
    let mut how = File::options();
    let file = how.read(true).write(true).open("/dev/null");
    file.map_err(|error| {
        let told = format!("/dev/null: {error}; run where there is one");
        io::Error::new(error.kind(), told)
    })
}

/// Returns an unnamed file that contains the text, so that nobody has to write the input while the command reads it. Without a
/// text, returns `/dev/null`.
fn stdin_file(text: Option<&[u8]>) -> io::Result<OwnedFd> {
    let Some(text) = text else {
        return Ok(null()?.into());
    };
    file("stdin", text)
}

/// Returns an unnamed file in memory that contains `text`, opened at its start. `name` is for debugging only.
pub(crate) fn file(name: &str, text: &[u8]) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(text)?;
    file.rewind()?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;

    use super::*;

    fn place(fd: i32) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()
    }

    fn closes_on_exec(fd: i32) -> Option<bool> {
        let facts = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
        let flags = facts.lines().find_map(|line| line.strip_prefix("flags:"))?;
        let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
        Some(flags & rustix::fs::OFlags::CLOEXEC.bits() != 0)
    }

    /// As long as another command has a copy of a pipe, the end of the output or of the input does not show.
    #[test]
    fn no_other_command_gets_any_of_them() {
        let size = TerminalSize {
            columns: 80,
            rows: 24,
        };
        for (streams, text, count) in [
            (Streams::Whole, Some(&b"text"[..]), 3),
            (Streams::Open, None, 4),
            (Streams::Terminal(size), None, 4),
            (Streams::Pipes, None, 6),
        ] {
            let ends = open(streams, text).unwrap();
            // Both ends of a pipe are in one place.
            let mut places = vec![PathBuf::from("/memfd:stdin (deleted)")];
            places.extend(place(ends.output.as_raw_fd()));
            places.extend(ends.input.as_ref().and_then(|it| place(it.as_raw_fd())));
            if let Some((input, output)) = &ends.pipes {
                places.extend(place(input.as_raw_fd()));
                places.extend(place(output.as_raw_fd()));
            }
            let terminal = rustix::pty::ptsname(&ends.output, Vec::new());
            places.extend(terminal.map(|it| it.to_string_lossy().into_owned().into()));
            let fds = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
            let marks: Vec<bool> = fds
                .filter_map(|it| it.file_name().to_str()?.parse().ok())
                .filter(|fd| place(*fd).is_some_and(|it| places.contains(&it)))
                .filter_map(closes_on_exec)
                .collect();
            assert!(marks.len() >= count, "{streams:?}: {marks:?} in {places:?}");
            assert!(marks.iter().all(|mark| *mark), "{streams:?}: {marks:?}");
        }
    }
}
