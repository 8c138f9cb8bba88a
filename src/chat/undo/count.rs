//! Counts the changes that the person has neither accepted nor rejected yet, for the winbar and for the signs in buffers.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::review::{OpenSince, OpenWork, find_open};
use crate::checkpoint::PartKind;
use crate::protocol::{NewLines, OpenLines, OpenSummary};
use crate::services::Services;

/// Counts the open changes of a chat: the changes that the person has neither accepted nor rejected yet. A separate task counts
/// them, because it must compare files.
#[derive(Default)]
pub(in crate::chat) struct Count {
    found: Option<oneshot::Receiver<Vec<OpenWork>>>,
    /// The result of the last count; none if there are no open changes.
    summary: Option<OpenSummary>,
}

impl Count {
    /// Waits for the result of the running count. If no count runs, waits forever.
    pub(in crate::chat) async fn ended(&mut self) -> OpenChanges {
        let Some(found) = &mut self.found else {
            return std::future::pending().await;
        };
        let works = found.await.unwrap_or_default();
        self.found = None;
        OpenChanges { works }
    }

    /// Starts to count the open changes of a transcript. The new count replaces a running one. Without a transcript, the result
    /// is 0.
    pub(in crate::chat) fn start(&mut self, services: &Arc<Services>, transcript: Option<String>) {
        let (sender, found) = oneshot::channel();
        self.found = Some(found);
        let services = Arc::clone(services);
        tokio::spawn(async move {
            let works = match transcript {
                Some(transcript) => find_open(&services, &transcript, OpenSince::Accepted).await,
                None => Ok(Vec::new()),
            };
            match works {
                // It fails if the chat has ended or counts again.
                Ok(works) => drop(sender.send(works)),
                Err(error) => tracing::warn!(%error, "the open changes were not counted"),
            }
        });
    }

    /// Stores the result of a count. Returns the lines of the open changes for the signs in buffers. Returns `None` if the chat
    /// had no open changes before and has none now.
    pub(in crate::chat) fn take(&mut self, open: &OpenChanges) -> Option<Vec<OpenLines>> {
        let before = std::mem::replace(&mut self.summary, open.summary());
        (before.is_some() || self.summary.is_some()).then(|| open.lines())
    }

    /// Returns the result of the last count for the winbar; none if there are no open changes.
    pub(in crate::chat) fn summary(&self) -> Option<OpenSummary> {
        self.summary.clone()
    }
}

/// The open changes of a chat, as the count found them.
pub(in crate::chat) struct OpenChanges {
    works: Vec<OpenWork>,
}

impl OpenChanges {
    fn summary(&self) -> Option<OpenSummary> {
        let files = self.works.iter().flat_map(|it| &it.files);
        let changes = files.clone().map(|it| it.parts.len()).sum();
        (changes > 0).then(|| OpenSummary {
            changes,
            files: files.clone().count(),
            since: files.filter_map(|it| it.since).min(),
        })
    }

    fn lines(&self) -> Vec<OpenLines> {
        let files = self.works.iter().flat_map(|work| {
            let path = |file| work.workspace.join(file).display().to_string();
            work.files.iter().map(move |file| OpenLines {
                file: path(&file.path),
                lines: (file.parts.iter())
                    .filter_map(|part| match &part.kind {
                        PartKind::Lines(hunk) => Some(NewLines {
                            first: part.line,
                            count: hunk.added(),
                        }),
                        _ => None,
                    })
                    .collect(),
            })
        });
        files.filter(|it| !it.lines.is_empty()).collect()
    }
}
