//! Makes changes of files, on disk and in Neovim's buffers: the changes of an `/undo`, or the changes of a trial that are kept.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::blocking::blocking;
use crate::checkpoint::{self, Checkpoints, Undo, UndoResult};
use crate::services::Services;
use crate::workspace::edits;

/// Makes changes in the workspace `root`: the changes of files by calling `on_disk`, then the changes of Neovim's buffers.
///
/// # Errors
/// `on_disk` failed, and nothing was changed.
pub(crate) async fn apply(
    services: &Services,
    root: &Path,
    mut undo: Undo,
    on_disk: impl FnOnce(&Checkpoints, Undo, &Path) -> std::io::Result<UndoResult> + Send + 'static,
) -> Result<UndoResult, String> {
    let all: Vec<_> = undo.all().iter().map(|it| root.join(&it.path)).collect();
    for file in &all {
        // A command of another chat may run.
        services.checkpoints.saved(file);
    }
    let in_buffers = std::mem::take(&mut undo.buffers);
    let (checkpoints, place) = (Arc::clone(&services.checkpoints), root.to_owned());
    let mut done = blocking(move || on_disk(&checkpoints, undo, &place)).await?;
    let buffers = services.buffers.clone();
    for (buffer, change) in in_buffers {
        let (changed, elsewhere) = edits::change_buffer(&buffers, buffer, root).await;
        let moved = changed.moved.then(|| "it has changed meanwhile".to_owned());
        match changed.problem.or(moved) {
            Some(why) => done.failed.push((change.path, why)),
            None => {
                // The buffer has the change all the same.
                done.failed
                    .extend(elsewhere.map(|why| (change.path.clone(), why)));
                done.changes.push(change);
            }
        }
    }
    for (file, to) in gone(&done.changes) {
        let to = to.map(|it| root.join(it));
        buffers.file_gone(&root.join(file), to.as_deref());
    }
    // The buffers of these files are read again. That may take long, so nothing waits for it.
    tokio::spawn(async move {
        let files = all.iter().map(PathBuf::as_path);
        buffers.read(files).await;
    });
    Ok(done)
}

/// Returns the files that the changes removed. If a file was moved, also returns its new path.
fn gone(changes: &[checkpoint::Change]) -> impl Iterator<Item = (&Path, Option<&Path>)> {
    let mut made: HashMap<_, &Path> = HashMap::new();
    for change in changes.iter().filter(|it| it.before.is_none()) {
        made.entry(&change.after).or_insert(&change.path);
    }
    let removed = changes.iter().filter(|it| {
        let was_file = matches!(it.before, Some(checkpoint::Entry::File { .. }));
        was_file && it.after.is_none()
    });
    removed.map(move |it| (it.path.as_path(), made.get(&it.before).copied()))
}
