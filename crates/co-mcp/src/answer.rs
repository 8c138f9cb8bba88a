//! The result of a call as texts.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolAnswer {
    pub parts: Vec<AnswerPart>,
    /// True if the server says that the call failed.
    pub is_error: bool,
}

/// A part of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerPart {
    Text(String),
    /// JSON that is not also among the texts.
    Structured(String),
    /// The address of something that the server has.
    Link {
        uri: String,
        name: String,
    },
    /// A picture, in base64. Nobody has looked whether the bytes are one.
    Image {
        mime: String,
        data: String,
    },
    /// Other bytes that are no text: their media type, and about how many there are.
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
