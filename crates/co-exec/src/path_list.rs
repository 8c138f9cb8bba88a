//! A list of paths in little memory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Paths in one piece of memory, each with a NUL after it. Clones share it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathList(Arc<[u8]>);

impl PathList {
    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        let paths = self.0.split(|byte| *byte == 0);
        let paths = paths.filter(|path| !path.is_empty());
        paths.map(|path| Path::new(OsStr::from_bytes(path)))
    }
}

impl<P: AsRef<Path>> FromIterator<P> for PathList {
    fn from_iter<T: IntoIterator<Item = P>>(paths: T) -> Self {
        let mut bytes = Vec::new();
        for path in paths {
            bytes.extend_from_slice(path.as_ref().as_os_str().as_bytes());
            bytes.push(0);
        }
        Self(bytes.into())
    }
}
