//! The mounts of a container: the workspace, and the files in it that a command must not change or open.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use super::WORKSPACE_INSIDE;
use crate::sandbox::ProtectedPaths;

/// A path of the workspace that gets a mount of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MountedPath {
    path: PathBuf,
    kind: MountedPathKind,
    /// The device, the inode and the creation time of the file. If another file replaces this file, the mount no longer covers
    /// the path. The creation time is necessary because a new file often gets the inode of a removed file.
    file: (u64, u64, Option<SystemTime>),
    directory: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MountedPathKind {
    /// The command may change the file or the contents of the directory, but cannot rename the path itself.
    Pinned,
    ReadOnly,
    Hidden,
}

/// Returns the protected paths that exist, sorted. Each gets a mount of its own. Skips symbolic links, over which nothing can be
/// mounted; their targets are protected paths too.
pub(super) fn mounted_paths(protected: &ProtectedPaths) -> Vec<MountedPath> {
    let kinds = [
        (&protected.hidden, MountedPathKind::Hidden),
        (&protected.held, MountedPathKind::ReadOnly),
        (&protected.writable, MountedPathKind::Pinned),
        (&protected.pinned, MountedPathKind::Pinned),
    ];
    let all = kinds
        .into_iter()
        .flat_map(|(paths, kind)| paths.iter().map(move |path| (path, kind)));
    let mut mounted: Vec<MountedPath> = Vec::new();
    for (path, kind) in all {
        let Ok(facts) = path.symlink_metadata() else {
            continue;
        };
        // The first kind of a path is the strictest.
        if !facts.is_symlink() && mounted.iter().all(|it| it.path != *path) {
            mounted.push(MountedPath {
                path: path.clone(),
                kind,
                file: (facts.dev(), facts.ino(), facts.created().ok()),
                directory: facts.is_dir(),
            });
        }
    }
    mounted.sort();
    mounted
}

/// Returns a secret that no mount in `mounted` hides. Either the file was missing when the mounts were made, or it is missing now, or
/// another file has replaced it.
pub(super) fn unhidden(protected: &ProtectedPaths, mounted: &[MountedPath]) -> Option<PathBuf> {
    let now = mounted_paths(protected);
    let is_hidden = |path: &&PathBuf| {
        let mut hidden = now.iter().filter(|it| it.kind == MountedPathKind::Hidden);
        hidden.any(|it| it.path == **path && mounted.contains(it))
    };
    protected.hidden.iter().find(|it| !is_hidden(it)).cloned()
}

/// An empty file and an empty directory that nobody may open. Both are created when co first covers a secret.
#[derive(Debug, Default)]
pub(super) struct Masks(Mutex<Option<Arc<tempfile::TempDir>>>);

impl Masks {
    fn path(&self, directory: bool) -> std::io::Result<PathBuf> {
        let mut masks = self.0.lock();
        let dir = match &*masks {
            Some(dir) if dir.path().is_dir() => Arc::clone(dir),
            _ => {
                let dir = tempfile::Builder::new()
                    .prefix(crate::repository::OUR_TMP)
                    .tempdir()?;
                std::fs::write(dir.path().join("file"), "")?;
                std::fs::create_dir(dir.path().join("directory"))?;
                for name in ["file", "directory"] {
                    let closed = std::fs::Permissions::from_mode(0o0);
                    std::fs::set_permissions(dir.path().join(name), closed)?;
                }
                let dir = Arc::new(dir);
                *masks = Some(Arc::clone(&dir));
                dir
            }
        };
        Ok(dir
            .path()
            .join(if directory { "directory" } else { "file" }))
    }
}

/// Returns the engine's arguments that mount the workspace and the paths in `mounted`. The engine mounts outer paths first.
///
/// # Errors
/// The masks cannot be created.
pub(super) fn arguments(
    (workspace, read_only): (&Path, bool),
    mounted: &[MountedPath],
    masks: &Masks,
) -> std::io::Result<Vec<OsString>> {
    let mut args = Vec::new();
    let mut mount = |source: &Path, target: &OsStr, read_only: bool| {
        args.extend(["--mount".into(), mount_text(source, target, read_only)]);
    };
    mount(workspace, OsStr::new(WORKSPACE_INSIDE), read_only);
    for mounted_path in mounted {
        let Ok(below) = mounted_path.path.strip_prefix(workspace) else {
            continue;
        };
        let target = Path::new(WORKSPACE_INSIDE).join(below);
        let target = target.as_os_str();
        match mounted_path.kind {
            MountedPathKind::Hidden => mount(&masks.path(mounted_path.directory)?, target, true),
            MountedPathKind::ReadOnly => mount(&mounted_path.path, target, true),
            MountedPathKind::Pinned => mount(&mounted_path.path, target, read_only),
        }
    }
    Ok(args)
}

/// Returns the value of the engine's option `--mount`, which has the form of CSV fields.
fn mount_text(source: &Path, target: &OsStr, read_only: bool) -> OsString {
    let mut text = OsString::from("type=bind");
    for (name, path) in [("source", source.as_os_str()), ("target", target)] {
        text.push(",\"");
        text.push(name);
        text.push("=");
        text.push(quoted(path));
        text.push("\"");
    }
    if read_only {
        text.push(",readonly");
    }
    text
}

/// Doubles the quotation marks of a text, as CSV requires.
fn quoted(text: &OsStr) -> OsString {
    let doubled = text.as_bytes().iter().flat_map(|byte| {
        let count = if *byte == b'"' { 2 } else { 1 };
        std::iter::repeat_n(*byte, count)
    });
    OsString::from_vec(doubled.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_takes_any_path() {
        let text = mount_text(Path::new("/a,b:\"c\" d"), OsStr::new("/workspace"), true);
        assert_eq!(
            text,
            "type=bind,\"source=/a,b:\"\"c\"\" d\",\"target=/workspace\",readonly"
        );
    }

    #[test]
    fn a_file_that_takes_the_place_of_another_needs_a_new_mount() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("secret"), "").unwrap();
        std::os::unix::fs::symlink("secret", path("link")).unwrap();
        let protected = ProtectedPaths {
            hidden: vec![path("secret")],
            held: ["link", "missing", "secret"].map(path).into(),
            ..ProtectedPaths::default()
        };
        let before = mounted_paths(&protected);
        assert_eq!(before.len(), 1, "{before:?}");
        assert_eq!(before[0].kind, MountedPathKind::Hidden);
        std::fs::write(path("secret"), "more").unwrap();
        assert_eq!(mounted_paths(&protected), before);
        assert_eq!(unhidden(&protected, &before), None);
        std::fs::write(path("new"), "").unwrap();
        std::fs::rename(path("new"), path("secret")).unwrap();
        let after = mounted_paths(&protected);
        assert_ne!(after, before);
        assert_eq!(unhidden(&protected, &before), Some(path("secret")));
        assert_eq!(unhidden(&protected, &after), None);
        std::fs::rename(path("secret"), path("gone")).unwrap();
        assert_eq!(unhidden(&protected, &after), Some(path("secret")));
        std::os::unix::fs::symlink("gone", path("secret")).unwrap();
        assert_eq!(unhidden(&protected, &after), Some(path("secret")));
        // Some file systems give the number of a removed file to the next one.
        let replace = || {
            std::fs::remove_file(path("secret")).unwrap();
            std::fs::write(path("secret"), "").unwrap();
            path("secret").symlink_metadata().unwrap().created().ok()
        };
        let made = replace();
        let before = mounted_paths(&protected);
        while made.is_some() && replace() == made {}
        let replaced = Some(path("secret")).filter(|_| made.is_some());
        assert_eq!(unhidden(&protected, &before), replaced);
    }
}
