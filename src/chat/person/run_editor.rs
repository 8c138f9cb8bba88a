//! Opens files in Neovim for programs of a command that the person typed. A program that wants an editor, such as `git commit`,
//! starts co-nvim. co-nvim asks the backend over a socket to open the file in this Neovim, and waits until the person has closed
//! the file.
//!
//! The socket belongs to one command, and only the person can reach it. A confined command has no socket.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Take};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::buffers::Buffers;
use crate::paths::private_dir;
use crate::protocol::FileEdit;
use co_exec::TimeLimit;
use co_exec::sandbox::{PrivateTmp, Removals};
use co_policy::rules::shell_join;

/// The subcommand of co-nvim that a program starts as its editor.
pub const SUBCOMMAND: &str = "__edit";

/// The environment variables that name an editor.
const VARIABLES: [&str; 4] = ["GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "VISUAL", "EDITOR"];

/// The variables of git that `/commit` needs in the buffer of a commit message. Without them, co would describe another
/// repository or another index.
const GIT_VARIABLES: [&str; 3] = ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"];

/// The largest number of bytes of a request, with all its parts.
const LONGEST_REQUEST: u64 = 16 << 10;

/// The pause after `accept` fails, for example because no file descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The start of the answer if the person has closed the file.
const CLOSED: &str = "closed";
const FAILED: &str = "failed ";

/// The socket through which the programs of a command will ask for an editor. The command has not started yet.
pub(super) struct EditorSocket {
    listener: UnixListener,
    path: PathBuf,
    dir: PrivateTmp,
}

/// Opens files in Neovim for the programs of a running command, until this value is dropped.
pub struct RunEditor {
    path: PathBuf,
    _dir: PrivateTmp,
    _task: AbortOnDropHandle<()>,
}

impl EditorSocket {
    /// Makes a socket in a new private directory below `parent`.
    ///
    /// # Errors
    /// The directory or the socket cannot be made, for example because the path is too long.
    pub(super) fn new(parent: &Path, removals: &Removals) -> io::Result<Self> {
        private_dir(parent)?;
        let dir = PrivateTmp::new_in(parent, removals)?;
        let path = dir.path().join("socket");
        let listener = StdListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener: UnixListener::from_std(listener)?,
            path,
            dir,
        })
    }

    /// Returns the environment variables through which programs find the editor. `program` is the path of co-nvim.
    pub(super) fn variables(&self, program: &Path) -> Option<Vec<(String, String)>> {
        let words = [program.to_str()?, SUBCOMMAND, self.path.to_str()?];
        let editor = shell_join(&words);
        Some(
            VARIABLES
                .map(|name| (name.to_owned(), editor.clone()))
                .into(),
        )
    }

    /// Starts to open the files that programs of the command ask for. While a file is open, the time-out of the command is
    /// paused.
    pub(super) fn serve(self, buffers: Buffers, command: String, time: TimeLimit) -> RunEditor {
        let Self {
            listener,
            path,
            dir,
        } = self;
        let task = tokio::spawn(async move {
            let mut editors = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        let stream = match accepted {
                            Ok((stream, _)) => stream,
                            Err(error) => {
                                tracing::warn!(%error, "an editor of a command could not connect");
                                tokio::time::sleep(ACCEPT_PAUSE).await;
                                continue;
                            }
                        };
                        let (buffers, command, time) = (buffers.clone(), command.clone(), time.clone());
                        editors.spawn(async move {
                            if let Err(error) = answer(stream, &buffers, command, &time).await {
                                tracing::warn!(%error, "an editor of a command ended");
                            }
                        });
                    }
                    Some(_) = editors.join_next() => {}
                }
            }
        });
        RunEditor {
            path,
            _dir: dir,
            _task: AbortOnDropHandle::new(task),
        }
    }
}

impl Drop for RunEditor {
    fn drop(&mut self) {
        // An empty directory is removed at once.
        let _ = fs::remove_file(&self.path);
    }
}

/// Reads a request, opens its file, and answers when the person has closed the file. Returns early if the program ends.
async fn answer(
    stream: UnixStream,
    buffers: &Buffers,
    command: String,
    time: &TimeLimit,
) -> io::Result<()> {
    let mut reader = BufReader::new(stream).take(LONGEST_REQUEST);
    let line = read_part(&mut reader).await?;
    let file = read_part(&mut reader).await?;
    let directory = read_part(&mut reader).await?;
    let mut variables = Vec::new();
    for name in GIT_VARIABLES {
        let value = String::from_utf8(read_part(&mut reader).await?);
        if let Some(value) = value.ok().filter(|it| !it.is_empty()) {
            variables.push((name.to_owned(), value));
        }
    }
    let mut stream = reader.into_inner().into_inner();
    let _hold = time.hold();
    let open = async {
        let (Ok(file), Ok(directory)) = (String::from_utf8(file), String::from_utf8(directory))
        else {
            return Some("the name of the file or of its directory is not UTF-8".to_owned());
        };
        let line = str::from_utf8(&line).ok().and_then(|it| it.parse().ok());
        buffers
            .edit(FileEdit {
                file,
                line,
                command,
                directory,
                variables,
            })
            .await
    };
    let mut ignored = [0];
    let problem = tokio::select! {
        problem = open => problem,
        // It sends nothing more.
        _ = stream.read(&mut ignored) => return Ok(()),
    };
    let text = problem.map_or_else(|| CLOSED.to_owned(), |why| format!("{FAILED}{why}"));
    stream.write_all(text.as_bytes()).await
}

/// Reads one part of a request, up to the next NUL.
async fn read_part(reader: &mut Take<BufReader<UnixStream>>) -> io::Result<Vec<u8>> {
    let mut part = Vec::new();
    reader.read_until(0, &mut part).await?;
    match part.pop() {
        Some(0) => Ok(part),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Opens files one after the other in the Neovim to which the socket belongs, and waits until each file is closed. `arguments`
/// are the path of the socket, and the arguments that the program gave its editor.
///
/// # Errors A file could not be edited, for this reason. The program that asked for the edit must fail.
pub fn edit(arguments: &[OsString]) -> Result<(), String> {
    let Some((socket, given)) = arguments.split_first() else {
        return Err(format!("{SUBCOMMAND} is for co itself"));
    };
    let (mut line, mut files, mut only_files) = (None, Vec::new(), false);
    for argument in given {
        let bytes = argument.as_bytes();
        match bytes.strip_prefix(b"+") {
            _ if only_files => files.push(argument),
            Some(number) if number.iter().all(u8::is_ascii_digit) => line = Some(number),
            _ if bytes == b"--" => only_files = true,
            None if !bytes.starts_with(b"-") => files.push(argument),
            _ => {
                let argument = argument.display();
                return Err(format!(
                    "this editor has no {argument}, only +LINE and files"
                ));
            }
        }
    }
    if files.is_empty() {
        return Err("this editor opens a file, and none was named".to_owned());
    }
    files
        .into_iter()
        .try_for_each(|file| edit_one(socket, line.unwrap_or_default(), file))
}

fn edit_one(socket: &OsStr, line: &[u8], file: &OsStr) -> Result<(), String> {
    let ask = || {
        let file = std::path::absolute(file)?.into_os_string();
        let directory = std::env::current_dir()?.into_os_string();
        let variables = GIT_VARIABLES.map(|name| std::env::var_os(name).unwrap_or_default());
        let mut request = [line, &[0]].concat();
        for part in [file, directory].into_iter().chain(variables) {
            request.extend([part.into_vec(), vec![0]].concat());
        }
        let mut stream = StdStream::connect(socket)?;
        stream.write_all(&request)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        io::Result::Ok(answer)
    };
    let answer = ask().map_err(|error| format!("Neovim cannot be reached: {error}"))?;
    match answer.strip_prefix(FAILED) {
        Some(why) => Err(why.to_owned()),
        None if answer == CLOSED => Ok(()),
        None => Err("Neovim or its command has ended".to_owned()),
    }
}
