//! Turns the parts of messages and plans into text.

use co_acp::schema::{ContentBlock, EmbeddedResourceResource, PlanEntry, PlanEntryStatus};

/// Returns the steps of a plan, each with its state in the words of the tool `update_plan`.
pub(super) fn steps(entries: &[PlanEntry]) -> Vec<(String, &'static str)> {
    let status = |status: &_| match status {
        PlanEntryStatus::InProgress => "in_progress",
        PlanEntryStatus::Completed => "completed",
        _ => "pending",
    };
    let entries = entries.iter();
    entries
        .map(|it| (it.content.clone(), status(&it.status)))
        .filter(|(content, _)| !content.trim().is_empty())
        .collect()
}

/// Returns a block of a message as text.
pub(super) fn block_text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => {
            format!(
                "[an image, {}, {} bytes of base64]",
                image.mime_type,
                image.data.len()
            )
        }
        ContentBlock::Audio(audio) => {
            format!(
                "[a sound, {}, {} bytes of base64]",
                audio.mime_type,
                audio.data.len()
            )
        }
        ContentBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                format!("{}:\n{}", text.uri, text.text)
            }
            EmbeddedResourceResource::BlobResourceContents(blob) => {
                format!("[{}, {} bytes of base64]", blob.uri, blob.blob.len())
            }
            other => serde_json::to_string(other).unwrap_or_default(),
        },
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}
