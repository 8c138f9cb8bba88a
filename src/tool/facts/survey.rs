//! Walks through directories for files that a reading command must not be given: secrets, devices, misleading names.

use std::collections::HashMap;
use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use co_exec::secrets::content;
use co_policy::facts::RiskyFiles;
use co_policy::secret_names;

/// Entries that a survey may meet.
const MAX_SURVEY: usize = 50_000;

/// Returns a survey of the files below `start`; `root` is the workspace's real path.
pub(super) fn below(start: &Path, root: &Path) -> RiskyFiles {
    let mut survey = RiskyFiles {
        complete: true,
        ..RiskyFiles::default()
    };
    let mut left = MAX_SURVEY;
    // Directories still to be read, with whether a name above is misread, and whether one is a secret.
    let mut todo = vec![(start.to_owned(), false, false)];
    while let Some((dir, strange, hidden)) = todo.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else {
            continue;
        };
        for entry in entries.flatten() {
            left = left.saturating_sub(1);
            if left == 0 {
                survey.complete = false;
                return survey;
            }
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let shown = || {
                let path = entry.path();
                path.strip_prefix(start).unwrap_or(&path).to_owned()
            };
            // Below, a name comes after its directory's name, so it is no option.
            let option = dir == start && name.starts_with('-');
            let strange = strange || option || is_misread(&name);
            if strange {
                survey.unsafe_names.push(shown());
            }
            // Git's objects are most of the files, and no text.
            if hidden && name == "objects" && dir.join("HEAD").exists() {
                continue;
            }
            let hidden = match kind.is_dir() {
                true => hidden || secret_names::is_secret(&name),
                // Source code in a directory such as `secrets` is no secret.
                false => {
                    secret_names::secret(&shown()).is_some()
                        || kind.is_file() && content::is_secret(&entry.path())
                }
            };
            if hidden {
                survey.secret.push(match kind.is_dir() {
                    true => shown().join("*"),
                    false => shown(),
                });
            }
            if kind.is_dir() {
                todo.push((entry.path(), strange, hidden));
            } else if !hidden && is_odd(kind, &entry.path(), root) {
                survey.irregular.push(shown());
            }
        }
    }
    survey
}

/// Returns a survey of the files that have these paths below `root`, the workspace's real path.
pub(super) fn listed(files: &[PathBuf], root: &Path) -> RiskyFiles {
    let mut survey = RiskyFiles {
        complete: files.len() < MAX_SURVEY,
        ..RiskyFiles::default()
    };
    if !survey.complete {
        return survey;
    }
    let mut dirs: HashMap<&Path, bool> = HashMap::new();
    for file in files {
        let name = file.to_string_lossy();
        // Git prints other names than plain ASCII in quotes.
        let quoted = !name.is_ascii() || name.contains(char::is_control);
        // Git prints paths from the command's directory on, which may be any directory above.
        let option = name.starts_with('-') || name.contains("/-");
        if quoted || option || is_misread(&name) {
            survey.unsafe_names.push(file.clone());
        }
        if secret_names::secret(file).is_some() || content::is_secret(&root.join(file)) {
            survey.secret.push(file.clone());
        }
        let dir = file.parent().unwrap_or(Path::new(""));
        let real = *dirs.entry(dir).or_insert_with(|| is_real(&root.join(dir)));
        let path = root.join(file);
        match path.symlink_metadata() {
            Ok(meta) if real && meta.is_file() => {}
            Ok(meta) if !real || meta.is_dir() || is_odd(meta.file_type(), &path, root) => {
                survey.irregular.push(file.clone());
            }
            _ => {}
        }
    }
    survey
}

/// Returns whether no part of a directory's path is a link.
fn is_real(dir: &Path) -> bool {
    dir.canonicalize().is_ok_and(|real| real == dir)
}

/// Returns whether xargs would split a name.
fn is_misread(name: &str) -> bool {
    name.contains(|c: char| c.is_whitespace() || "'\"\\".contains(c))
}

/// Returns whether a file is a device, a FIFO, a socket, or a link to a secret or out of the workspace.
fn is_odd(kind: FileType, path: &Path, root: &Path) -> bool {
    if kind.is_symlink() {
        let real = path.canonicalize().ok();
        return real.is_none_or(|real| {
            real.strip_prefix(root)
                .map_or(true, |inside| secret_names::secret(inside).is_some())
        });
    }
    kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device()
}
