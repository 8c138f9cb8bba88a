//! Writes lines of the audit file on a thread that may block.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio::task::JoinHandle;

use crate::audit::Record;
use crate::services::Services;

/// Writes a line with the hash of a long output to the audit file. The line is in the file when the returned task has ended.
pub(crate) fn write(
    services: &Arc<Services>,
    mut record: Record,
    spill: Option<PathBuf>,
) -> JoinHandle<()> {
    let services = Arc::clone(services);
    tokio::task::spawn_blocking(move || {
        let chat = record.chat.clone();
        record.spill = spill.as_deref().and_then(hash);
        if let Some(audit) = &services.audit
            && let Err(error) = audit.write(record)
        {
            tracing::error!(%error, "the audit log was not written");
            services.unaudited(&chat, &error);
        }
    })
}

fn hash(spill: &Path) -> Option<String> {
    let mut file = std::fs::File::open(spill).ok()?;
    let mut digest = Sha256::new();
    std::io::copy(&mut file, &mut digest).ok()?;
    let hex = digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>();
    Some(format!("sha256:{hex}"))
}
