//! Resolves many paths with the same directories, such as the links of `/usr/bin`, and looks at each directory once.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// The most links on the way to one path, as in the kernel.
const MOST_LINKS: usize = 40;

/// The canonical paths of the directories that were resolved so far. Use it for one look at the file system: it does not notice
/// later changes.
#[derive(Debug, Default)]
pub(super) struct RealPaths {
    dirs: HashMap<PathBuf, PathBuf>,
}

impl RealPaths {
    /// Returns the real path of an absolute path, if there is such a file or directory.
    pub(super) fn find(&mut self, path: &Path) -> Option<PathBuf> {
        self.follow(path.to_owned(), &mut MOST_LINKS.clone())
    }

    fn follow(&mut self, mut path: PathBuf, links_left: &mut usize) -> Option<PathBuf> {
        loop {
            let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
                // It ends with `..`, or is the top.
                return path.canonicalize().ok();
            };
            let dir = self.directory(above, links_left)?;
            let at = dir.join(name);
            match rustix::fs::readlink(&at, Vec::new()) {
                Ok(target) => path = dir.join(OsStr::from_bytes(target.as_bytes())),
                Err(Errno::INVAL) => return Some(at),
                Err(_) => return None,
            }
            *links_left = links_left.checked_sub(1)?;
        }
    }

    fn directory(&mut self, path: &Path, links_left: &mut usize) -> Option<PathBuf> {
        if let Some(real) = self.dirs.get(path) {
            return Some(real.clone());
        }
        let real = self.follow(path.to_owned(), links_left)?;
        self.dirs.insert(path.to_owned(), real.clone());
        Some(real)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_are_resolved_as_the_system_does() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path();
        fs::create_dir_all(top.join("a/b")).unwrap();
        fs::write(top.join("a/b/file"), "").unwrap();
        for (target, link) in [
            ("b/file", "a/near"),
            ("../a/near", "a/b/up"),
            ("a", "dir"),
            ("dir/b/../near", "through"),
            ("loop/x", "loop"),
            ("self", "self"),
            ("nowhere", "dangling"),
            ("..", "a/b/above"),
            ("/", "root"),
        ] {
            symlink(target, top.join(link)).unwrap();
        }
        symlink(top.join("dir/b"), top.join("whole")).unwrap();
        let mut paths = RealPaths::default();
        for path in [
            "",
            "a",
            "a/near",
            "a/b/up",
            "dir",
            "dir/b/up",
            "through",
            "loop",
            "loop/x",
            "self",
            "dangling",
            "a/b/above",
            "a/b/above/near",
            "root",
            "root/",
            "whole/up",
            "none",
            "none/x",
            "a/b/file/x",
            "dir/../a/near",
            "whole/..",
        ] {
            let path = top.join(path);
            let expected = path.canonicalize().ok();
            for _ in 0..2 {
                assert_eq!(paths.find(&path), expected, "{}", path.display());
            }
        }
    }
}
