//! The state that the requests of one connection share: the memory that its messages took, and the fault that ended it.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::http_fault::HttpFault;
use crate::transport::UnaskedMemory;

/// The shared state of a connection. Clones refer to the same connection.
#[derive(Clone)]
pub(super) struct SharedState {
    unasked: UnaskedMemory,
    fault: Arc<OnceLock<HttpFault>>,
    failed: CancellationToken,
}

impl SharedState {
    pub(super) fn new(unasked: UnaskedMemory, failed: CancellationToken) -> Self {
        Self {
            unasked,
            fault: Arc::default(),
            failed,
        }
    }

    /// Returns the fault that ended the connection.
    pub(super) fn fault(&self) -> Option<HttpFault> {
        self.fault.get().cloned()
    }

    /// Ends the connection with a fault. Returns this fault, or the earlier fault that already ended the connection.
    pub(super) fn end(&self, fault: HttpFault) -> HttpFault {
        let fault = self.fault.get_or_init(|| fault).clone();
        self.failed.cancel();
        fault
    }

    /// Adds the size of a message to the total of the messages that the server sent without a request. Ends the connection if the
    /// server sends too much without an answer to a request.
    pub(super) fn count(&self, memory: u64) -> Result<(), HttpFault> {
        match self.unasked.add(memory) {
            true => Ok(()),
            false => Err(self.end(HttpFault::TooMuch)),
        }
    }
}
