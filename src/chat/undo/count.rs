//! Counts the changes that the person has not answered yet, for the winbar and for the signs in buffers.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::super::Chat;
use super::review::{OpenWork, Since, find_open};
use crate::checkpoint::PartKind;
use crate::protocol::{NewLines, OpenLines, OpenSummary, ToEditor};

/// A count, which takes a while because it compares files.
#[derive(Default)]
pub(in crate::chat) struct Count {
    found: Option<oneshot::Receiver<Vec<OpenWork>>>,
}

impl Count {
    /// Waits for the open changes. Without a count, waits forever.
    pub(in crate::chat) async fn ended(&mut self) -> OpenChanges {
        let Some(found) = &mut self.found else {
            return std::future::pending().await;
        };
        let works = found.await.unwrap_or_default();
        self.found = None;
        OpenChanges { works }
    }
}

/// The open changes of a chat.
pub(in crate::chat) struct OpenChanges {
    works: Vec<OpenWork>,
}

impl Chat {
    /// Starts to count the open changes, in the place of an earlier count.
    pub(in crate::chat) fn count_open(&mut self) {
        let (sender, found) = oneshot::channel();
        self.count.found = Some(found);
        let (services, transcript) = (Arc::clone(&self.services), self.recorder.id());
        tokio::spawn(async move {
            let works = match transcript {
                Some(transcript) => find_open(&services, &transcript, Since::Accepted).await,
                None => Ok(Vec::new()),
            };
            match works {
                // It fails if the chat has ended or counts again.
                Ok(works) => drop(sender.send(works)),
                Err(error) => tracing::warn!(%error, "the open changes were not counted"),
            }
        });
    }

    pub(in crate::chat) fn counted(&mut self, open: &OpenChanges) {
        let summary = open.summary();
        if summary.is_none() && self.status.open.is_none() {
            return;
        }
        self.status.open = summary;
        self.show_state();
        self.services.editor.tell(ToEditor::OpenChanges {
            chat: self.id,
            files: open.lines(),
        });
    }
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
