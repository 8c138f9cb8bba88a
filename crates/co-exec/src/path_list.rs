//! A compact list of paths.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The size in bytes of the number with which each entry begins: the length of the prefix that it shares with the path before it.
const NUMBER: usize = size_of::<u16>();

/// A list of paths in a single allocation, which clones share.
///
/// The paths are prefix-compressed: each entry has the length of the prefix that it shares with the path before it, the rest of
/// the path, and a NUL. Sorted paths take a quarter of their length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathList(Arc<[u8]>);

impl PathList {
    pub fn iter(&self) -> impl Iterator<Item = PathBuf> {
        let (mut left, mut path) = (&*self.0, Vec::new());
        std::iter::from_fn(move || {
            let (number, rest) = left.split_first_chunk::<NUMBER>()?;
            let end = rest.iter().position(|byte| *byte == 0)?;
            path.truncate(u16::from_le_bytes(*number).into());
            path.extend_from_slice(&rest[..end]);
            left = &rest[end + 1..];
            Some(OsString::from_vec(path.clone()).into())
        })
    }
}

impl<P: AsRef<Path>> FromIterator<P> for PathList {
    fn from_iter<T: IntoIterator<Item = P>>(paths: T) -> Self {
        let (mut bytes, mut last) = (Vec::new(), Vec::new());
        for path in paths {
            let path = path.as_ref().as_os_str().as_bytes();
            let same = path
                .iter()
                .zip(&last)
                .take_while(|(one, other)| one == other);
            let shared = u16::try_from(same.count()).unwrap_or(u16::MAX);
            bytes.extend_from_slice(&shared.to_le_bytes());
            bytes.extend_from_slice(&path[shared.into()..]);
            bytes.push(0);
            last = path.to_vec();
        }
        Self(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_has_the_paths_that_it_was_made_of(
            paths in proptest::collection::vec("[ab/é]{0,6}|a{65530,65540}", 0..8),
        ) {
            let paths: Vec<PathBuf> = paths.into_iter().map(PathBuf::from).collect();
            let list: PathList = paths.iter().collect();
            prop_assert_eq!(list.iter().collect::<Vec<_>>(), paths);
        }
    }

    #[test]
    fn paths_in_their_order_take_little() {
        let paths = (0..1000).map(|it| format!("packages/one/src/deep/file{it:04}.rs"));
        assert!(paths.collect::<PathList>().0.len() < 1000 * 11);
    }
}
