//! The images in an agent's messages and calls. co saves each image in a file, so that the person can open it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

use crate::blocking::blocking;
use co_acp::schema::{ContentBlock, SessionUpdate, ToolCallContent};
use co_exec::beneath::Dir;

/// The largest number of images that co saves in one turn.
const MOST_IMAGES: usize = 50;

/// The image types that co saves: the first bytes of the file, and the extension. Programs that show these types run no code in
/// them.
const KINDS: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpg"),
    (b"GIF8", "gif"),
    (b"RIFF", "webp"),
];

/// The images that co saved in one turn.
pub(super) struct KeptImages {
    /// The directory of the saved images. When co starts, it removes old files from this directory.
    dir: PathBuf,
    count: usize,
}

impl KeptImages {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, count: 0 }
    }

    /// Saves the images of an update in files, and replaces each image by the path of its file.
    pub(super) async fn keep(&mut self, update: &mut SessionUpdate) {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.keep_block(&mut chunk.content).await,
            SessionUpdate::ToolCall(call) => self.keep_all(&mut call.content).await,
            SessionUpdate::ToolCallUpdate(update) => {
                if let Some(content) = &mut update.fields.content {
                    self.keep_all(content).await;
                }
            }
            _ => {}
        }
    }

    async fn keep_all(&mut self, content: &mut [ToolCallContent]) {
        for part in content {
            if let ToolCallContent::Content(content) = part {
                self.keep_block(&mut content.content).await;
            }
        }
    }

    async fn keep_block(&mut self, block: &mut ContentBlock) {
        let ContentBlock::Image(image) = block else {
            return;
        };
        self.count += 1;
        if self.count > MOST_IMAGES {
            return;
        }
        let (dir, data) = (self.dir.clone(), std::mem::take(&mut image.data));
        let kept = blocking(move || {
            let path = keep(&dir, &data);
            Ok::<_, String>((data, path))
        });
        match kept.await {
            Ok((_, Ok(Some(path)))) => {
                *block = ContentBlock::from(format!("[an image: {}]", path.display()));
            }
            // It is named by its size.
            Ok((data, Ok(None))) => image.data = data,
            Ok((data, Err(error))) => {
                tracing::warn!(%error, "an image of an agent is not kept");
                image.data = data;
            }
            Err(why) => tracing::warn!(why, "an image of an agent is not kept"),
        }
    }
}

/// Writes an image to a file whose name is the hash of its content. Returns `None` if the data is no image of a known type.
fn keep(dir: &Path, data: &str) -> io::Result<Option<PathBuf>> {
    let Ok(bytes) = BASE64_STANDARD.decode(data) else {
        return Ok(None);
    };
    let kind = KINDS.iter().find(|(start, _)| bytes.starts_with(start));
    let Some((_, suffix)) = kind else {
        return Ok(None);
    };
    let hash = format!("{:x}", Sha256::digest(&bytes));
    let name = format!("image-{}.{suffix}", &hash[..16]);
    let path = dir.canonicalize()?;
    let dir = Dir::open(&path)?;
    if dir.node(&name)?.is_none() {
        let (unfinished, mut file) = dir.make_unfinished(".image-", 0o600)?;
        file.write_all(&bytes)?;
        unfinished.create(name.as_ref())?;
    }
    Ok(Some(path.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use co_acp::schema::{ContentChunk, ImageContent, ToolCall};

    use crate::chat::agent_turn::content::block_text;

    #[tokio::test]
    async fn images_are_kept_in_files_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let mut images = KeptImages::new(dir.path().to_owned());
        let png = b"\x89PNG\r\n\x1a\nrest".as_slice();
        let image = |bytes: &[u8]| {
            ContentBlock::Image(ImageContent::new(
                BASE64_STANDARD.encode(bytes),
                "image/png",
            ))
        };
        let mut said = SessionUpdate::AgentMessageChunk(ContentChunk::new(image(png)));
        let mut call = SessionUpdate::ToolCall(
            ToolCall::new("1", "look").content(vec![image(png).into(), image(b"<svg>").into()]),
        );
        images.keep(&mut said).await;
        images.keep(&mut call).await;
        let (SessionUpdate::AgentMessageChunk(said), SessionUpdate::ToolCall(call)) = (said, call)
        else {
            panic!("the kinds stay");
        };
        let text = block_text(&said.content);
        let path = text.strip_prefix("[an image: ").unwrap();
        let path = path.strip_suffix(']').unwrap();
        assert_eq!(std::fs::read(path).unwrap(), png);
        let parts = call.content.iter().map(|it| match it {
            ToolCallContent::Content(it) => block_text(&it.content),
            other => panic!("{other:?}"),
        });
        let parts: Vec<_> = parts.collect();
        assert_eq!(parts[0], text);
        assert_eq!(parts[1], "[an image, image/png, 8 bytes of base64]");
        assert_eq!(dir.path().read_dir().unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_turn_keeps_only_so_many() {
        let dir = tempfile::tempdir().unwrap();
        let mut images = KeptImages::new(dir.path().to_owned());
        for number in 0..MOST_IMAGES + 5 {
            let bytes = format!("GIF8{number}");
            let image = ImageContent::new(BASE64_STANDARD.encode(bytes), "image/gif");
            let chunk = ContentChunk::new(ContentBlock::Image(image));
            images
                .keep(&mut SessionUpdate::AgentMessageChunk(chunk))
                .await;
        }
        assert_eq!(dir.path().read_dir().unwrap().count(), MOST_IMAGES);
    }
}
