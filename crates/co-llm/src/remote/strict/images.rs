//! The image limits in the vendors' documents.

use base64::prelude::{BASE64_STANDARD, Engine};

use super::{Checked, require};

/// The image limits in one document. 0 means that there is no limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageRules {
    pub(super) types: &'static [&'static str],
    pub(super) length: usize,
    pub(super) side: u32,
    pub(super) pixels: u64,
    pub(super) number: usize,
    pub(super) total: usize,
}

pub(super) const ALL: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Checks the types and the bytes of images in base64.
pub(super) fn check(rules: &ImageRules, images: &[(&str, &str)]) -> Checked {
    let below = |value: usize, limit: usize| limit == 0 || value <= limit;
    require(below(images.len(), rules.number), || {
        format!("too many images: {}", images.len())
    })?;
    let total = images.iter().map(|(_, data)| data.len()).sum();
    require(below(total, rules.total), || "request_too_large".into())?;
    images.iter().try_for_each(|(kind, data)| {
        require(rules.types.contains(kind), || format!("type {kind}"))?;
        require(below(data.len(), rules.length), || "image too large".into())?;
        let (width, height) = sides(data).ok_or("Could not process image")?;
        let side = width.max(height);
        require(rules.side == 0 || side <= rules.side, || {
            format!("image dimensions exceed max allowed size: {side} pixels")
        })?;
        let pixels = u64::from(width) * u64::from(height);
        require(rules.pixels == 0 || pixels <= rules.pixels, || {
            format!("too many pixels: {pixels}")
        })
    })
}

/// Returns the width and the height of a complete PNG. The tests use no other images.
fn sides(data: &str) -> Option<(u32, u32)> {
    let bytes = BASE64_STANDARD.decode(data).ok()?;
    let number = |at: usize| {
        bytes
            .get(at..at + 4)?
            .try_into()
            .ok()
            .map(u32::from_be_bytes)
    };
    let whole = bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.ends_with(b"IEND\xaeB`\x82");
    let sides = (number(16)?, number(20)?);
    (whole && sides.0 > 0 && sides.1 > 0).then_some(sides)
}
