//! Removes the setuid bits of files that a command in a container created. The engine lets the command set these bits, and the
//! workspace is visible outside the container: anybody on the machine could run such a program with the permissions of its owner.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use co_text::one_line;
use rustix::fs::FileType;

use super::instance::Container;
use crate::beneath::{Dir, Kind, Node};
use crate::regular::ChangeTime;

/// The longest time for searching the workspace for setuid files.
const MAX_TIME: Duration = Duration::from_secs(10);
/// The most directories in a path relative to an open directory. To search deeper, co opens a directory further down.
const MAX_DEPTH: usize = 100;
/// The most files that the message to the person names.
const MAX_NAMED: usize = 10;

const SETUID: u32 = 0o4000;

/// Removes the setuid bits by the `chmod` of the container. Arguments: the paths.
const CHMOD: &str = r#"for file; do chmod u-s "$file"; done"#;

/// A search for the setuid files of a workspace that changed since a certain time.
#[derive(Debug)]
struct SetuidSearch {
    since: ChangeTime,
    until: Instant,
    cleared: Vec<PathBuf>,
    /// The files whose setuid bits this process may not remove.
    refused: Vec<PathBuf>,
    /// True if the search has checked every file.
    whole: bool,
}

/// Removes the setuid bits of the workspace's files that changed since a certain time. Returns a sentence about the files that
/// had such bits, or `None` if no file had them.
pub(super) async fn clear(container: &Container, since: ChangeTime) -> Option<String> {
    let mut look = look(container, since).await?;
    if !look.refused.is_empty() {
        // They belong to the user of the container.
        let inside = look.refused.iter().filter_map(|path| {
            let path = container.inside(&container.workspace().0.join(path))?;
            Some(path.into_os_string())
        });
        let args = ["exec", &container.name, "sh", "-c", CHMOD, "co"].map(OsString::from);
        let args: Vec<OsString> = args.into_iter().chain(inside).collect();
        // The second look tells whether that worked.
        let _ = container.call(&args).await;
        let before = std::mem::take(&mut look.refused);
        let cleared = std::mem::take(&mut look.cleared);
        look = self::look(container, since).await?;
        let gone = before.into_iter().filter(|it| !look.refused.contains(it));
        look.cleared = cleared.into_iter().chain(gone).collect();
    }
    look.told()
}

async fn look(container: &Container, since: ChangeTime) -> Option<SetuidSearch> {
    let workspace = container.workspace().0.to_owned();
    let look = tokio::task::spawn_blocking(move || SetuidSearch::at(&workspace, since));
    look.await.ok()
}

impl SetuidSearch {
    fn at(workspace: &Path, since: ChangeTime) -> Self {
        let mut look = Self {
            since,
            until: Instant::now() + MAX_TIME,
            cleared: Vec::new(),
            refused: Vec::new(),
            whole: true,
        };
        match Dir::open(workspace) {
            Ok(dir) => look.below(&dir, Path::new("")),
            Err(_) => look.whole = false,
        }
        look
    }

    /// Checks the files below the open directory `top`, whose path in the workspace is `at`.
    fn below(&mut self, top: &Dir, at: &Path) {
        let (mut left, mut closed) = (vec![PathBuf::new()], Vec::new());
        while let Some(path) = left.pop() {
            let below = match top.find(&path) {
                _ if Instant::now() > self.until => Err(io::ErrorKind::TimedOut.into()),
                Ok(Some(dir)) if path.components().nth(MAX_DEPTH).is_some() => {
                    self.below(&dir, &at.join(&path));
                    continue;
                }
                Ok(Some(dir)) => open(&dir).and_then(|mode| {
                    closed.extend(mode.map(|mode| (path.clone(), mode)));
                    self.files(&dir, &at.join(&path))
                }),
                // It was moved.
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            match below {
                Ok(names) => left.extend(names.iter().map(|name| path.join(name))),
                Err(_) => self.whole = false,
            }
        }
        for (path, mode) in closed.iter().rev() {
            // It may be gone.
            let _stays_open = top.set_mode(path, *mode);
        }
    }

    /// Checks the files in a directory. Returns the names of its subdirectories.
    fn files(&mut self, dir: &Dir, at: &Path) -> io::Result<Vec<OsString>> {
        let mut dirs = Vec::new();
        for entry in dir.list()? {
            let (name, kind) = entry?;
            match kind {
                FileType::Directory => dirs.push(name),
                FileType::RegularFile => {
                    let clear = |node: &Node| self.is_meant(node).then_some(node.mode & !SETUID);
                    let list = match dir.change_mode(&name, clear) {
                        Ok(None) => continue,
                        Ok(Some(())) => &mut self.cleared,
                        Err(_) => &mut self.refused,
                    };
                    list.push(at.join(&name));
                }
                _ => {}
            }
        }
        Ok(dirs)
    }

    fn is_meant(&self, node: &Node) -> bool {
        node.kind == Kind::File && node.mode & SETUID != 0 && !node.changed().is_before(self.since)
    }

    /// Returns a sentence about the result of the search, or `None` if no setuid bit was found and the search was complete.
    fn told(&self) -> Option<String> {
        let names = |paths: &[PathBuf]| {
            let mut names: Vec<String> = paths
                .iter()
                .map(|it| one_line(&it.to_string_lossy()))
                .collect();
            if names.len() > MAX_NAMED {
                let more = format!("{} more", names.len() - MAX_NAMED);
                names.truncate(MAX_NAMED);
                names.push(more);
            }
            names.join(", ")
        };
        let cleared = (!self.cleared.is_empty()).then(|| {
            format!(
                "co took the setuid bit from {}: others could run it as its owner",
                names(&self.cleared)
            )
        });
        let refused = (!self.refused.is_empty()).then(|| {
            format!(
                "others can run it as its owner, and co may not take the setuid bit: {}",
                names(&self.refused)
            )
        });
        let part =
            (!self.whole).then(|| "co could not look at all files for setuid bits".to_owned());
        let told: Vec<String> = [cleared, refused, part].into_iter().flatten().collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

/// Makes a directory readable for this process. If this changes the directory's mode, returns the old mode.
fn open(dir: &Dir) -> io::Result<Option<u32>> {
    let mode = dir.itself()?.mode;
    if mode & 0o500 == 0o500 {
        return Ok(None);
    }
    dir.set_mode("", mode | 0o500)?;
    Ok(Some(mode))
}
