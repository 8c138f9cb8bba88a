//! Applies proposals: to the buffer of the file, if there is one, or else to the disk.

use std::io;
use std::path::{Path, PathBuf};

use super::{EditRefused, Proposal, disk};
use crate::blocking::blocking;
use crate::buffers::Buffers;
use crate::protocol::{BufferChange, BufferChanged};
use co_edit::{Names, hunks, unified};
use co_exec::beneath::Dir;
use co_exec::regular::FileStamp;

/// The number of times that a buffer may change while a change of it is on its way.
const MAX_TRIES: usize = 5;

/// The reason why a change that waited was not made.
const CANCELLED: &str = "the turn was cancelled before the change could be made";

/// A change that was made.
#[derive(Debug)]
pub struct AppliedChange {
    /// The change as it was made, which may be at other lines than it was proposed for.
    pub proposal: Proposal,
    /// The reason why the buffer is not saved, so that the file does not have the change.
    pub unsaved: Option<String>,
    /// The change that autocommands such as formatters made after it.
    pub reformatted: Option<AutocommandChange>,
    /// The diagnostics of language servers that were not there before it: `line:column: severity: message`.
    pub diagnostics: Vec<String>,
}

/// A change that autocommands made when a buffer was written.
#[derive(Debug)]
pub struct AutocommandChange {
    /// The unified diff.
    pub diff: String,
    /// The text after it.
    pub text: String,
}

/// Applies a change to the current text of the file. If a command of the person is half done in the buffer of the file, this
/// function waits for the end of the command, or for the cancellation.
///
/// # Errors
/// The lines that it changes have changed meanwhile, the file cannot be changed, or the wait was cancelled. Then nothing is
/// changed.
pub async fn apply(
    mut proposal: Proposal,
    buffers: &Buffers,
) -> Result<AppliedChange, EditRefused> {
    for _ in 0..MAX_TRIES {
        let open = tokio::select! {
            open = buffers.read([proposal.file()]) => open,
            () = buffers.cancelled() => return Err(refused(&proposal, CANCELLED)),
        };
        proposal = refusing(move || proposal.rebased(&open)).await?;
        let Some(change) = proposal.buffer_change()? else {
            let applied = refusing(move || {
                proposal.apply_to_disk()?;
                Ok(AppliedChange {
                    proposal,
                    unsaved: None,
                    reformatted: None,
                    diagnostics: Vec::new(),
                })
            });
            let applied = applied.await?;
            if let Some((file, to)) = applied.proposal.gone() {
                buffers.file_gone(file, to);
            }
            return Ok(applied);
        };
        let (changed, elsewhere) = change_buffer(buffers, change, &proposal.place().root).await;
        if changed.moved {
            continue;
        }
        if let Some(problem) = changed.problem {
            return Err(refused(&proposal, &problem));
        }
        let reformatted = changed.text.and_then(|text| reformatted(&proposal, &text));
        return Ok(AppliedChange {
            proposal,
            unsaved: changed.unsaved.or(elsewhere),
            reformatted,
            diagnostics: changed.diagnostics,
        });
    }
    Err(refused(&proposal, "its buffer keeps changing"))
}

/// Changes the buffer of a file in the directory `root`. Neovim writes the file by its name, which may lead elsewhere by then. So
/// this compares the file below `root` before and after. If that file does not have what Neovim wrote, returns the reason too.
pub(crate) async fn change_buffer(
    buffers: &Buffers,
    change: BufferChange,
    root: &Path,
) -> (BufferChanged, Option<String>) {
    let (root, file) = (root.to_owned(), PathBuf::from(&change.file));
    let look = move || FileState::of(&root, &file);
    let before = match blocking(look.clone()).await {
        Ok(before) => before,
        Err(problem) => {
            let refused = BufferChanged {
                problem: Some(problem),
                ..BufferChanged::default()
            };
            return (refused, None);
        }
    };
    let changed = buffers.change(change).await;
    if changed.moved || changed.problem.is_some() || changed.unsaved.is_some() {
        return (changed, None);
    }
    let elsewhere = match blocking(look).await {
        Ok(now) => before.elsewhere(&now).map(str::to_owned),
        Err(why) => Some(why),
    };
    (changed, elsewhere)
}

/// A file below the handle of its workspace.
#[derive(PartialEq)]
struct FileState {
    /// The device and the inode of its directory; none if there is none.
    dir: Option<(u64, u64)>,
    file: Option<FileStamp>,
    /// None if it cannot be read.
    bytes: Option<Vec<u8>>,
}

impl FileState {
    /// Reads a file in the directory `root`.
    ///
    /// # Errors
    /// A part of its path is a link.
    fn of(root: &Path, file: &Path) -> io::Result<Self> {
        let path = file.strip_prefix(root).map_err(io::Error::other)?;
        let (dir, name) = match Dir::open(root).and_then(|root| root.parent(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    dir: None,
                    file: None,
                    bytes: None,
                });
            }
            opened => opened?,
        };
        Ok(Self {
            dir: Some(dir.itself()?.stamp.inode()),
            file: dir.node(name)?.map(|node| node.stamp),
            bytes: disk::read(&dir, name).ok().flatten(),
        })
    }

    /// Returns the reason why Neovim wrote another file, if it did. `now` is the state after that.
    fn elsewhere(&self, now: &Self) -> Option<&'static str> {
        if self.dir.is_some() && self.dir != now.dir {
            return Some("its directory was replaced while Neovim wrote it");
        }
        (self == now).then_some("the file did not change when Neovim wrote it")
    }
}

impl AppliedChange {
    /// Returns the change that takes this one back.
    ///
    /// # Errors
    /// The change is no change of a text, or the text cannot be stored.
    pub fn inverse(&self) -> Result<Proposal, EditRefused> {
        self.proposal.inverse()
    }
}

/// Moves each proposal to the text that its file has now.
///
/// # Errors
/// The lines of a proposal were edited since it was made, a file cannot be changed, or the wait for a command of the person was
/// cancelled.
pub async fn rebase_all(
    proposals: Vec<Proposal>,
    buffers: &Buffers,
) -> Result<Vec<Proposal>, EditRefused> {
    let open = tokio::select! {
        open = buffers.read(proposals.iter().map(Proposal::file)) => open,
        () = buffers.cancelled() => return Err(EditRefused(CANCELLED.to_owned())),
    };
    let rebased = move || proposals.into_iter().map(|it| it.rebased(&open)).collect();
    refusing(rebased).await
}

fn refused(proposal: &Proposal, why: &str) -> EditRefused {
    EditRefused(format!("cannot change {}: {why}", proposal.path))
}

fn reformatted(proposal: &Proposal, lines: &[u8]) -> Option<AutocommandChange> {
    let [proposed, text] = proposal.after_autocommands(lines)?;
    let names = Names {
        old: Some(&proposal.path),
        new: Some(&proposal.path),
    };
    let changes = hunks(proposed.as_str(), text.as_str());
    Some(AutocommandChange {
        diff: unified(proposed.as_str(), &changes, names),
        text: text.as_str().to_owned(),
    })
}

/// Does work that blocks on files.
async fn refusing<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EditRefused> + Send + 'static,
) -> Result<T, EditRefused> {
    blocking(work).await.map_err(EditRefused)
}
