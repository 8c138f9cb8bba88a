//! What every session of one backend shares: the executor, the settings, the store, the judges.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::blocking::blocking;
use super::jobs::Board;
use crate::audit::{self, Audit};
use crate::config::Config;
use crate::editor::Editor;
use crate::exec::Executor;
use crate::llm::{Fault, Provider};
use crate::policy;
use crate::policy::redact::Redactor;
use crate::protocol::{Level, ToEditor};
use crate::store::Store;
use crate::tool::judge::{Bench, Judge};
use crate::tool::rules;
use crate::tool::trial::Trial;

/// Made once, right after the handshake.
pub struct Kit {
    pub editor: Editor,
    pub config: Config,
    pub executor: Executor,
    pub trial: Trial,
    pub store: Store,
    pub redactor: Redactor,
    /// None where its file cannot be made; said at the start.
    pub audit: Option<Audit>,
    pub places: Places,
    /// The jobs of every session, for the person.
    pub jobs: Board,
    connect: Connect,
    judges: Mutex<HashMap<PathBuf, Arc<Judge>>>,
    /// The sessions whose person knows that the audit log is not written.
    unaudited: Mutex<HashSet<String>>,
    ids: AtomicU64,
}

/// Makes the provider that answers with the model named, or with the one that is set.
pub type Connect = Box<dyn Fn(Option<&str>) -> Result<Arc<dyn Provider>, Fault> + Send + Sync>;

/// Where things are on this machine.
pub struct Places {
    pub home: PathBuf,
    /// The backend's PATH.
    pub path: OsString,
    /// co's own directories, which no command reads unasked.
    pub own: Vec<PathBuf>,
    /// Where saved rules live.
    pub rules: PathBuf,
}

/// What a kit is made of.
pub struct Parts {
    pub editor: Editor,
    pub config: Config,
    pub executor: Executor,
    pub trial: Trial,
    pub store: Store,
    pub redactor: Redactor,
    /// None where its file cannot be made; said at the start.
    pub audit: Option<Audit>,
    pub places: Places,
    pub connect: Connect,
}

impl Kit {
    pub fn new(parts: Parts) -> Self {
        Self {
            editor: parts.editor,
            config: parts.config,
            executor: parts.executor,
            trial: parts.trial,
            store: parts.store,
            redactor: parts.redactor,
            audit: parts.audit,
            places: parts.places,
            jobs: Board::default(),
            connect: parts.connect,
            judges: Mutex::default(),
            unaudited: Mutex::default(),
            ids: AtomicU64::new(first_id()),
        }
    }

    /// A number no other question or block of this backend has.
    pub fn id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// The judge of a workspace. The first one there says what is wrong with its rules.
    pub fn judge(&self, workspace: &Path) -> Arc<Judge> {
        let mut judges = self.judges.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(judge) = judges.get(workspace) {
            return Arc::clone(judge);
        }
        let (saved, mut problems) = match rules::load(&self.places.rules, workspace) {
            Ok(saved) => (saved, Vec::new()),
            Err(error) => (Vec::new(), vec![error.to_string()]),
        };
        let (judge, more) = Judge::new(Bench {
            workspace: workspace.to_owned(),
            home: self.places.home.clone(),
            path: self.places.path.clone(),
            settings: self.config.policy.clone(),
            saved,
            own: self.places.own.clone(),
        });
        problems.extend(more);
        for message in problems {
            self.notice(Level::Warn, message);
        }
        let judge = Arc::new(judge);
        judges.insert(workspace.to_owned(), Arc::clone(&judge));
        judge
    }

    /// Keeps an allow rule for a workspace and lets its judge know.
    ///
    /// # Errors
    /// Where the rules' file cannot be written.
    pub async fn save_rule(&self, workspace: PathBuf, rule: policy::Pattern) -> Result<(), String> {
        let (dir, place) = (self.places.rules.clone(), workspace.clone());
        blocking(move || rules::save(&dir, &place, &rule)).await?;
        self.forget_judge(&workspace);
        Ok(())
    }

    /// Makes the next judgement of a workspace read its rules anew.
    pub fn forget_judge(&self, workspace: &Path) {
        self.judges
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(workspace);
    }

    /// The provider the settings name, with another model if one is given.
    ///
    /// # Errors
    /// Where no provider is set up or its key is missing.
    pub fn provider(&self, model: Option<&str>) -> Result<Arc<dyn Provider>, Fault> {
        (self.connect)(model)
    }

    /// Says, once a session, that the audit log is not written.
    pub fn unaudited(&self, session: &str, error: &audit::Error) {
        let mut known = self
            .unaudited
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if known.insert(session.to_owned()) {
            self.notice(
                Level::Warn,
                format!(
                    "{error}; what runs goes unlogged until it can be: free or mend that place"
                ),
            );
        }
    }

    /// Says one sentence to the person.
    pub fn notice(&self, level: Level, message: impl Into<String>) {
        self.editor.tell(ToEditor::Notice {
            level,
            message: message.into(),
        });
    }
}

/// Apart from every id of the backend before this one, which Lua may still know; exact in a Lua number.
fn first_id() -> u64 {
    (u64::from(std::process::id()) << 24) | 1
}
