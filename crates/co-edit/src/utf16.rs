//! UTF-16, of either byte order.

use crate::error::NotText;

/// Returns the byte order mark of UTF-16. `little` means little-endian.
pub(crate) fn mark(little: bool) -> &'static [u8] {
    if little { &[0xff, 0xfe] } else { &[0xfe, 0xff] }
}

pub(crate) fn text(bytes: &[u8], little: bool) -> Result<String, NotText> {
    let (units, []) = bytes.as_chunks::<2>() else {
        return Err(NotText::Utf16);
    };
    let read = |unit: &[u8; 2]| match little {
        true => u16::from_le_bytes(*unit),
        false => u16::from_be_bytes(*unit),
    };
    let text: String = char::decode_utf16(units.iter().map(read))
        .collect::<Result<_, _>>()
        .map_err(|_| NotText::Utf16)?;
    match text.contains('\0') {
        true => Err(NotText::Binary),
        false => Ok(text),
    }
}

pub(crate) fn bytes(text: &str, little: bool) -> Vec<u8> {
    let write = |unit: u16| match little {
        true => unit.to_le_bytes(),
        false => unit.to_be_bytes(),
    };
    text.encode_utf16().flat_map(write).collect()
}
