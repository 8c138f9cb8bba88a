//! Units of settings, and conversions of their numbers.

pub(super) const MIB: u64 = 1 << 20;
pub(super) const TIB: u64 = 1 << 40;
pub(super) const DAY: u64 = 24 * 3600;

/// Converts a number whose range was already checked.
pub(super) fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub(super) fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
