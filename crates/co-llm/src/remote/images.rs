//! Selects the images that a server accepts. `docs/PROVIDERS.md` names the sources of the limits.

use std::ops::Range;

use base64::prelude::{BASE64_STANDARD, Engine};
use imagesize::{ImageSize, ImageType};

use super::request_info::RequestInfo;
use super::rules::is_mistral;
use crate::provider_table::Protocol;
use crate::transcript::Image;

const MIB: usize = 1024 * 1024;

/// The image limits of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limits {
    formats: &'static [ImageType],
    /// True if the server accepts animated GIFs.
    moving: bool,
    /// The largest size of an image, in characters of base64.
    length: usize,
    /// The largest width or height of an image, in pixels.
    side: usize,
    /// The largest number of pixels of an image.
    pixels: usize,
    /// The largest number of images in a request.
    number: usize,
    /// The largest size of all images in a request together, in characters of base64.
    total: usize,
    /// A number of images and a side length. If a request has more images than this number, no image may be wider or higher than
    /// this length in pixels.
    many: Option<(usize, usize)>,
}

const PNG_AND_JPEG: &[ImageType] = &[ImageType::Png, ImageType::Jpeg];
const WITHOUT_GIF: &[ImageType] = &[ImageType::Png, ImageType::Jpeg, ImageType::Webp];
const ALL: &[ImageType] = &[
    ImageType::Png,
    ImageType::Jpeg,
    ImageType::Webp,
    ImageType::Gif,
];

/// The limits of OpenAI. co also assumes them for an unknown server.
const OPENAI: Limits = Limits {
    formats: ALL,
    moving: false,
    length: 20 * MIB,
    side: usize::MAX,
    pixels: usize::MAX,
    number: 500,
    total: 48 * MIB,
    many: None,
};

const CLAUDE: Limits = Limits {
    moving: true,
    length: 5 * MIB,
    side: 8_000,
    number: 100,
    total: 28 * MIB,
    many: Some((20, 2_000)),
    ..OPENAI
};

const GEMINI: Limits = Limits {
    formats: WITHOUT_GIF,
    number: 3_000,
    total: 18 * MIB,
    ..OPENAI
};

const MISTRAL: Limits = Limits {
    length: 10 * MIB,
    side: 10_000,
    number: 8,
    ..OPENAI
};

const GROQ: Limits = Limits {
    pixels: 33_177_600,
    number: 5,
    total: 7 * MIB / 2,
    ..OPENAI
};

const XAI: Limits = Limits {
    formats: PNG_AND_JPEG,
    ..OPENAI
};

impl Limits {
    fn of(info: &RequestInfo) -> &'static Self {
        if info.protocol == Protocol::Anthropic || info.is_claude() {
            &CLAUDE
        } else if info.protocol == Protocol::Gemini || info.model.contains("gemini") {
            &GEMINI
        } else if info.is_at("api.groq.com") {
            &GROQ
        } else if info.is_at("api.x.ai") {
            &XAI
        } else if is_mistral(info) {
            &MISTRAL
        } else {
            &OPENAI
        }
    }

    /// Returns the reason why an image cannot be sent.
    fn refusal(&self, picture: &Picture, info: &RequestInfo) -> Option<String> {
        let title = &info.title;
        let ImageSize { width, height } = picture.size;
        if !self.formats.contains(&picture.format) {
            let name = picture.media_type().trim_start_matches("image/");
            Some(format!("{title} takes no {}", name.to_uppercase()))
        } else if picture.moving && !self.moving {
            Some(format!("{title} takes no GIF that moves"))
        } else if picture.length > self.length.min(self.total) {
            Some(format!("it is larger than {title} takes"))
        } else if width.max(height) > self.side {
            let side = self.side;
            Some(format!(
                "it has {width}x{height} pixels, and {title} takes up to {side} a side"
            ))
        } else if width.saturating_mul(height) > self.pixels {
            Some(format!(
                "it has {width}x{height} pixels, which is more than {title} takes"
            ))
        } else {
            None
        }
    }
}

/// The properties of an image that the limits apply to.
struct Picture {
    format: ImageType,
    size: ImageSize,
    moving: bool,
    /// The size in characters of base64.
    length: usize,
}

impl Picture {
    /// Returns the properties of an image, or `None` if the data is not a complete image.
    fn read(data: &str) -> Option<Self> {
        let bytes = BASE64_STANDARD.decode(data).ok()?;
        let format = imagesize::image_type(&bytes).ok()?;
        let size = imagesize::blob_size(&bytes).ok()?;
        let has = |word: &[u8]| bytes.windows(word.len()).rev().any(|it| it == word);
        let whole = match format {
            ImageType::Png => has(b"IEND"),
            ImageType::Jpeg => has(b"\xff\xd9"),
            ImageType::Gif => has(b"\x3b"),
            ImageType::Webp => riff_length(&bytes) <= bytes.len(),
            _ => false,
        };
        let moving = format == ImageType::Gif && has(b"NETSCAPE2.0");
        let drawn = size.width > 0 && size.height > 0;
        (whole && drawn).then_some(Self {
            format,
            size,
            moving,
            length: data.len(),
        })
    }

    fn media_type(&self) -> &'static str {
        match self.format {
            ImageType::Jpeg => "image/jpeg",
            ImageType::Gif => "image/gif",
            ImageType::Webp => "image/webp",
            _ => "image/png",
        }
    }
}

/// Returns the file length in the header of a WebP file.
fn riff_length(bytes: &[u8]) -> usize {
    let length = bytes.get(4..8).and_then(|it| it.try_into().ok());
    length.map_or(usize::MAX, |it| u32::from_le_bytes(it) as usize)
}

/// Returns, for each image, the image to send or the reason why it cannot be sent.
///
/// The media type follows the bytes of the image, because servers compare both. If there are too many images, the oldest are left
/// out until the request uses only half of the limit. So the beginning of the next requests stays the same.
pub(super) fn choose(info: &RequestInfo, images: &[&Image]) -> Vec<Result<Image, String>> {
    let limits = Limits::of(info);
    let mut pictures: Vec<Result<Picture, String>> = images
        .iter()
        .map(|image| {
            let picture = Picture::read(&image.data);
            let picture = picture.ok_or_else(|| "its bytes are no whole image".to_owned())?;
            match limits.refusal(&picture, info) {
                Some(reason) => Err(reason),
                None => Ok(picture),
            }
        })
        .collect();
    let kept = newest(limits, &pictures);
    let count = pictures[kept.clone()].iter().flatten().count();
    let side = limits.many.filter(|(many, _)| count > *many);
    for (at, picture) in pictures.iter_mut().enumerate() {
        let Ok(read) = picture else { continue };
        let longer = read.size.width.max(read.size.height);
        if !kept.contains(&at) {
            *picture = Err("a request has no room for older images".to_owned());
        } else if let Some((many, side)) = side.filter(|(_, side)| longer > *side) {
            *picture = Err(format!(
                "with more than {many} images, {} takes up to {side} pixels a side",
                info.title
            ));
        }
    }
    let with_type = |(picture, image): (Result<Picture, String>, &&Image)| {
        picture.map(|picture| Image {
            media_type: picture.media_type().to_owned(),
            data: image.data.clone(),
        })
    };
    pictures.into_iter().zip(images).map(with_type).collect()
}

/// Returns the index range of the newest images that fit into one request.
fn newest(limits: &Limits, pictures: &[Result<Picture, String>]) -> Range<usize> {
    let length = |at: usize| pictures[at].as_ref().map_or(0, |it| it.length);
    let counted = |at: usize| usize::from(pictures[at].is_ok());
    let (mut start, mut number, mut total) = (0, 0, 0);
    for at in 0..pictures.len() {
        number += counted(at);
        total += length(at);
        if number <= limits.number && total <= limits.total {
            continue;
        }
        while start < at && (number > limits.number.div_ceil(2) || total > limits.total / 2) {
            number -= counted(start);
            total -= length(start);
            start += 1;
        }
    }
    start..pictures.len()
}

#[cfg(test)]
mod tests;
