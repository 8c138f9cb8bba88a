//! The result of a tool call as texts.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// The result of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolAnswer {
    pub parts: Vec<AnswerPart>,
    /// True if the server reports that the call failed.
    pub is_error: bool,
}

/// A part of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerPart {
    Text(String),
    /// Structured JSON that no text of the result repeats.
    Structured(String),
    /// A link to a resource of the server.
    Link {
        uri: String,
        name: String,
    },
    /// An image in base64. The bytes are not checked.
    Image {
        mime: String,
        data: String,
    },
    /// Binary data that is not included: its media type and its approximate size in bytes.
    Bytes {
        mime: String,
        size: usize,
    },
}

impl ToolAnswer {
    pub(crate) fn new(result: CallToolResult) -> Self {
        let mut parts: Vec<_> = result.content.into_iter().map(content_part).collect();
        // A server that has structured content should also send it as text.
        let structured = result.structured_content;
        let has_text = parts.iter().any(|it| matches!(it, AnswerPart::Text(_)));
        if let Some(structured) = structured.filter(|_| !has_text) {
            parts.push(AnswerPart::Structured(structured.to_string()));
        }
        Self {
            parts,
            is_error: result.is_error.unwrap_or(false),
        }
    }
}

pub(crate) fn content_part(block: ContentBlock) -> AnswerPart {
    match block {
        ContentBlock::Text(text) => AnswerPart::Text(text.text),
        ContentBlock::Image(image) => AnswerPart::Image {
            mime: image.mime_type,
            data: image.data,
        },
        ContentBlock::Audio(audio) => bytes(audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => resource_part(embedded.resource),
        ContentBlock::ResourceLink(link) => AnswerPart::Link {
            uri: link.uri,
            name: link.title.unwrap_or(link.name),
        },
        _ => AnswerPart::Text("[content of an unknown kind]".to_owned()),
    }
}

pub(crate) fn resource_part(contents: ResourceContents) -> AnswerPart {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => AnswerPart::Text(text),
        ResourceContents::BlobResourceContents {
            mime_type, blob, ..
        } => match mime_type.unwrap_or_default() {
            mime if mime.starts_with("image/") => AnswerPart::Image { mime, data: blob },
            mime => bytes(mime, &blob),
        },
        _ => AnswerPart::Text("[a resource of an unknown kind]".to_owned()),
    }
}

fn bytes(mime: String, base64: &str) -> AnswerPart {
    AnswerPart::Bytes {
        mime,
        size: base64.len() / 4 * 3,
    }
}
