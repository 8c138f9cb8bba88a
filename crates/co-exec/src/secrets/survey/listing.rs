//! The entries of a directory, in a compact form.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;

use rustix::fs::{FileType, RawMode};

/// The number of bits by which the file type is shifted in a mode.
const KIND_SHIFT: u32 = 12;

/// The names and file types of a directory's entries. Each entry is stored as a byte for the type, the name, and a NUL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Listing(Arc<[u8]>);

impl Listing {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&OsStr, FileType)> {
        let entries = self.0.split(|byte| *byte == 0);
        entries.filter_map(|entry| {
            let (kind, name) = entry.split_first()?;
            let mode = RawMode::from(*kind) << KIND_SHIFT;
            Some((OsStr::from_bytes(name), FileType::from_raw_mode(mode)))
        })
    }

    /// Returns whether the directory has an entry with this name.
    pub(crate) fn has(&self, name: &OsStr) -> bool {
        self.iter().any(|(it, _)| it == name)
    }

    pub(super) fn len(&self) -> usize {
        self.iter().count()
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Restores a listing from the bytes that [`Self::as_bytes`] returned.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    #[cfg(test)]
    pub(super) fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl FromIterator<(OsString, FileType)> for Listing {
    fn from_iter<T: IntoIterator<Item = (OsString, FileType)>>(entries: T) -> Self {
        let mut bytes = Vec::new();
        for (name, kind) in entries {
            let kind = u8::try_from(kind.as_raw_mode() >> KIND_SHIFT);
            bytes.push(kind.unwrap_or_default());
            bytes.extend(name.into_vec());
            bytes.push(0);
        }
        Self(bytes.into())
    }
}
