//! Reads whole files that a person attaches to a prompt.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use co_edit::FileText;
use co_exec::beneath::open_real;
use co_llm::transcript::Image;

/// The largest number of bytes of an image. The base64 form is a third larger, and Anthropic refuses images of more than 5 MiB.
const LARGEST_IMAGE: usize = 3840 << 10;
/// The number of first bytes of a file that show whether it is an image.
const START: usize = 16;
/// The extensions of files that must be images. In a repository, a symbolic link with such a name may lead to a secret.
const EXTENSIONS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// The content of an attached file.
pub enum Attached {
    /// The text of a file of `size` bytes, or the start of this text.
    Text { text: String, size: usize },
    /// The image in a file of `size` bytes.
    Image { image: Image, size: usize },
}

/// Reads a file: an image as a whole, or at most `most` bytes of a text. Also returns the canonical path of the file. Blocks on
/// files. Call it from `spawn_blocking`.
///
/// # Errors
/// A short reason for the person: the file does not exist, or cannot be attached.
pub fn read(path: &Path, most: usize) -> Result<(PathBuf, Attached), String> {
    let real = path.canonicalize().map_err(words)?;
    if !real.is_file() {
        return Err("it is no file".to_owned());
    }
    let (mut file, node) = open_real(&real).map_err(words)?;
    let size = usize::try_from(node.size()).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    read_up_to(START, &mut file, &mut bytes).map_err(words)?;
    let extension = path.extension().and_then(|it| it.to_str());
    let extension = extension.map(str::to_ascii_lowercase);
    let attached = match media_type(&bytes) {
        Some(_) if size > LARGEST_IMAGE => {
            return Err(format!(
                "the image is larger than {} KiB",
                LARGEST_IMAGE >> 10
            ));
        }
        Some(media_type) => {
            read_up_to(LARGEST_IMAGE, &mut file, &mut bytes).map_err(words)?;
            let image = Image {
                media_type: media_type.to_owned(),
                data: STANDARD.encode(&bytes),
            };
            Attached::Image { image, size }
        }
        None if extension.is_some_and(|it| EXTENSIONS.contains(&it.as_str())) => {
            return Err("it has no image in it".to_owned());
        }
        None => {
            read_up_to(most, &mut file, &mut bytes).map_err(words)?;
            let text = decoded(&bytes, size);
            Attached::Text { text, size }
        }
    };
    Ok((real, attached))
}

/// Returns at most `most` bytes from the start of a file as text. `real` is the canonical path of the file. Blocks on files. Call
/// it from `spawn_blocking`.
///
/// # Errors
/// The file is not a regular file, or cannot be read.
pub(super) fn text_of(real: &Path, most: usize) -> io::Result<String> {
    let (mut file, node) = open_real(real)?;
    let mut bytes = Vec::new();
    read_up_to(most, &mut file, &mut bytes)?;
    let size = usize::try_from(node.size()).unwrap_or(usize::MAX);
    Ok(decoded(&bytes, size))
}

/// Returns a path without symbolic links. The last component need not exist.
pub fn real_path(path: &Path) -> PathBuf {
    let above = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize()
        .ok()
        .or_else(above)
        .unwrap_or_else(|| path.to_owned())
}

fn words(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    }
}

/// Reads from the file until `bytes` contains `most` bytes, or the file ends.
fn read_up_to(most: usize, file: &mut File, bytes: &mut Vec<u8>) -> io::Result<()> {
    let more = most.saturating_sub(bytes.len());
    file.take(more as u64).read_to_end(bytes).map(drop)
}

/// Decodes the first bytes of a file as text. `size` is the size of the whole file.
fn decoded(bytes: &[u8], size: usize) -> String {
    match FileText::decode(bytes) {
        // A character may be cut.
        Ok(text) if bytes.len() == size => text.as_str().to_owned(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Returns the media type of an image that begins with these bytes; none if they do not begin an image.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}
