//! Finds the secret files of a workspace, and removes secret values from text.
//!
//! `names` (of co-policy) decides by name alone, [`content`] by what a file contains. [`survey()`] walks a workspace
//! once; the sandbox hides the files that it finds. [`Values`] reads their values, and [`redact`] removes these from
//! text for a model. Nothing here decides about commands.

pub mod content;
mod extract;
mod matcher;
mod named;
pub mod redact;
mod survey;
mod value;
mod values;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub use matcher::Matcher;
pub use named::named;
pub use survey::{Survey, survey};
pub use values::Values;

/// The last survey of each workspace. Clones share the surveys.
#[derive(Debug, Clone, Default)]
pub struct Surveys {
    last: Arc<Mutex<HashMap<PathBuf, Arc<Survey>>>>,
}

impl Surveys {
    /// Returns the survey of the workspace `root`, and takes a new one if a directory, or a file that may be secret by
    /// its content, changed since the last.
    ///
    /// Blocks on files.
    pub fn current(&self, root: &Path) -> Arc<Survey> {
        let last = self.lock().get(root).cloned();
        let last = last.unwrap_or_default();
        if last.is_current() {
            return last;
        }
        let survey = Arc::new(last.again(root));
        self.lock().insert(root.to_owned(), Arc::clone(&survey));
        survey
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Arc<Survey>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
