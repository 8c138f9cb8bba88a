//! Applies proposals to the buffer of the file, or to the disk if no buffer has the file.

use std::io;
use std::path::{Path, PathBuf};

use super::{EditRefused, Proposal, disk};
use crate::blocking::blocking;
use crate::buffers::Buffers;
use crate::protocol::{BufferChange, BufferChanged};
use co_edit::{Names, hunks, unified};
use co_exec::beneath::Dir;
use co_exec::regular::FileStamp;

/// The largest number of attempts to change a buffer whose text changes meanwhile.
const MAX_TRIES: usize = 5;

/// The reason why a waiting change was not made.
const CANCELLED: &str = "the turn was cancelled before the change could be made";

/// A change that has been made.
#[derive(Debug)]
pub struct AppliedChange {
    /// The change that was made. It may affect other lines than the change that was proposed.
    pub proposal: Proposal,
    /// The reason why the buffer was not saved, so that the file on disk has not changed.
    pub unsaved: Option<String>,
    /// A later change of the same buffer by autocommands, such as formatters.
    pub reformatted: Option<AutocommandChange>,
    /// The diagnostics of language servers that are new since the change, each as `line:column: severity: message`.
    pub diagnostics: Vec<String>,
}

/// A change that autocommands made when a buffer was saved.
#[derive(Debug)]
pub struct AutocommandChange {
    /// The unified diff.
    pub diff: String,
    /// The text after the change.
    pub text: String,
}

/// Applies a change to the current text of the file. If the person is in the middle of an editor command in the buffer of the
/// file, waits until this command ends or the change is cancelled.
///
/// # Errors
/// The lines of the change have changed meanwhile, the file cannot be changed, or the wait was cancelled. Nothing is changed
/// then.
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

/// Changes the buffer of a file in the directory `root`. Neovim saves the file by its path, which may lead to another file by
/// then. So this function compares the file below `root` before and after. If the file does not contain the text that Neovim
/// saved, also returns the reason.
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

/// The state of a file. The file is opened relative to the directory descriptor of its workspace.
#[derive(PartialEq)]
struct FileState {
    /// The device and the inode of the file's directory; none if the directory does not exist.
    dir: Option<(u64, u64)>,
    file: Option<FileStamp>,
    /// The content of the file; none if it cannot be read.
    bytes: Option<Vec<u8>>,
}

impl FileState {
    /// Reads a file in the directory `root`.
    ///
    /// # Errors
    /// A component of the path is a symbolic link.
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

    /// Returns the reason why Neovim saved another file; none if it saved this file. `now` is the state after the save.
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
    /// The change is not a change of a text, or the encoding of the file cannot store the text.
    pub fn inverse(&self) -> Result<Proposal, EditRefused> {
        self.proposal.inverse()
    }
}

/// Rebases each proposal on the current text of its file.
///
/// # Errors
/// The lines of a proposal have changed meanwhile, a file cannot be changed, or the wait for an editor command of the person was
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

/// Runs `work` on a thread that may block, and returns its result.
async fn refusing<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EditRefused> + Send + 'static,
) -> Result<T, EditRefused> {
    blocking(work).await.map_err(EditRefused)
}
