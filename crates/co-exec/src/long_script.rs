//! A script that is too long for an argument: bash reads it from a descriptor, which no program of the script inherits.

/// The descriptor.
pub(super) const DESCRIPTOR: i32 = 3;

/// The script that bash gets as its argument in place of the long one.
pub(super) const READ: &str = "IFS= read -r -d '' -u 3 script; exec 3<&-; eval \"$script\"";
