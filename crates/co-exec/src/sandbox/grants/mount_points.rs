//! Finds file systems that are mounted below a directory.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns a mount point below `dir`, a canonical path. Returns `None` if nothing is mounted there.
///
/// # Errors
/// `/proc` is not mounted.
pub(super) fn below(dir: &Path) -> io::Result<Option<PathBuf>> {
    let mounts = std::fs::read("/proc/self/mountinfo")?;
    Ok(mounted_below(dir, &mounts))
}

/// Returns a mount point below `dir`, from the contents of `/proc/self/mountinfo`.
fn mounted_below(dir: &Path, mounts: &[u8]) -> Option<PathBuf> {
    let points = mounts.split(|byte| *byte == b'\n').filter_map(|line| {
        let field = line.split(|byte| *byte == b' ').nth(4)?;
        Some(unescaped(field))
    });
    let mut below = points.filter(|point| point.starts_with(dir) && point != dir);
    below.next()
}

/// Decodes a path from `mountinfo`, which writes spaces, tabs, newlines and backslashes as octal numbers.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let number = after.get(..3).filter(|_| *first == b'\\');
        let number =
            number.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(number.unwrap_or(*first));
        rest = if number.is_some() { &after[3..] } else { after };
    }
    OsStr::from_bytes(&bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_below_a_directory_is_found_by_its_real_name() {
        let mounts = b"\
22 1 0:5 / / rw - ext4 /dev/sda rw
23 22 0:6 / /w rw - ext4 /dev/sdb rw
24 22 0:7 / /work/a\\040b\\134 rw - tmpfs tmpfs rw
";
        let below = |dir: &str| mounted_below(Path::new(dir), mounts);
        assert_eq!(below("/work"), Some(PathBuf::from("/work/a b\\")));
        for dir in ["/w", "/wor", "/work/a b\\", "/work/a"] {
            assert_eq!(below(dir), None, "{dir}");
        }
    }
}
