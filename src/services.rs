//! The services that all chats of a backend share, such as the executor, the settings, the store and the judges.

mod agent_label;
pub(crate) mod audit_task;
pub(crate) mod foreground;
pub mod running_jobs;
pub(crate) mod trust_answers;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::timeout;

use self::agent_label::AgentLabel;
use self::foreground::Foreground;
use self::running_jobs::RunningJobs;
use self::trust_answers::TrustAnswers;
use crate::audit::{self, Audit};
use crate::blocking::blocking;
use crate::buffers::Buffers;
use crate::checkpoint::{Checkpoints, PersonRun};
use crate::config::{Applies, Config, ConfinementSetting, GivenSettings, ModelChoice};
use crate::editor::Editor;
use crate::mcp::ToolServers;
use crate::protocol::{NoticeLevel, ToEditor};
use crate::store::Store;
use crate::workspace::judge::{Judge, JudgeConfig};
use crate::workspace::own_git::OwnGit;
use crate::workspace::rules;
use crate::workspace::sandbox_probe::SandboxProbe;
use co_exec::Executor;
use co_exec::sandbox::SandboxRefusal;
use co_exec::secrets::redact::{RedactedText, Redactor};
use co_exec::secrets::{Matcher, Surveys, Values};
use co_llm::{Fault, Price, Provider};
use co_policy::HostRules;
use co_policy::rule_files::SavedRules;

/// The time after which co drops the survey and the snapshot of a workspace that nobody uses.
const UNUSED_TIME: Duration = Duration::from_secs(3600);
/// The time that co waits for a container engine before it tells the person about the delay.
const QUIET_WAIT: Duration = Duration::from_secs(2);
const NO_ANSWER_YET: &str = "co waits for the container engine, which has not answered yet; <C-c> or `:Co /stop` ends the wait";

/// The services of all chats. They are made after the handshake. [`Services::changed`] replaces only the settings.
#[derive(Clone)]
pub struct Services {
    pub editor: Editor,
    pub buffers: Buffers,
    pub config: Config,
    /// The values from which `config` was made.
    given: GivenSettings,
    /// The handle that starts commands in accordance with `config`.
    pub executor: Executor,
    pub probe: SandboxProbe,
    pub store: Store,
    pub redactor: Redactor,
    /// The audit file; none if it cannot be created. The person then gets a notice at the start.
    pub audit: Option<Arc<Audit>>,
    pub places: Arc<ServicePaths>,
    pub checkpoints: Arc<Checkpoints>,
    /// The running jobs of all chats.
    pub jobs: Arc<RunningJobs>,
    /// The tool servers that all chats share.
    pub tool_servers: Arc<ToolServers>,
    /// The person's answers about trust in files, and the open questions about trust.
    pub(crate) trust_answers: Arc<TrustAnswers>,
    pub(crate) foreground: Foreground,
    /// The values of the secrets of each workspace.
    values: Arc<Mutex<HashMap<PathBuf, Arc<Values>>>>,
    make_provider: MakeProvider,
    judges: Arc<Mutex<HashMap<PathBuf, CachedJudge>>>,
    /// The rules about hosts in the newest settings. Commands that started before a change of the settings use them too.
    host_settings: Arc<Mutex<HostRules>>,
    /// The ids of the chats that already got the warning about an audit file that co cannot write.
    unaudited: Arc<Mutex<HashSet<String>>>,
    ids: Arc<AtomicU64>,
}

/// The judge of a workspace, and the settings from which it was made.
struct CachedJudge {
    settings: co_policy::PolicySettings,
    judge: Arc<Judge>,
}

/// Makes the provider that a chat chose, or else the provider of the settings.
pub type MakeProvider =
    Arc<dyn Fn(&Config, &ModelChoice) -> Result<Arc<dyn Provider>, Fault> + Send + Sync>;

/// The files and directories that the services use.
pub struct ServicePaths {
    pub home: PathBuf,
    /// The PATH of the backend.
    pub path: OsString,
    /// The directories of co itself. Commands cannot read them without approval.
    pub own: Vec<PathBuf>,
    /// The directory that contains the person's settings and instructions.
    pub config: PathBuf,
    /// The directory for saved rules.
    pub rules: PathBuf,
    /// The directory for the person's answers about trust in files.
    pub trust: PathBuf,
    /// The directory of checkpoints. It is created when the first turn begins.
    pub checkpoints: PathBuf,
    /// The directory of the layers of trials. It is created by the first trial.
    pub trials: PathBuf,
    /// The parent of the agents' directories. Each of these is created when its agent starts for the first time.
    pub agents: PathBuf,
    /// The parent of the tool servers' home directories. Each of these is created when its server starts for the first time.
    pub servers: PathBuf,
    /// The directory of the logins at tool servers, which the first login makes.
    pub logins: PathBuf,
    /// The directory of the sockets through which the person's commands open files in Neovim. It is created by the first such
    /// command.
    pub editors: PathBuf,
    /// The path of this process's program.
    pub program: PathBuf,
}

/// The parts from which [`Services`] are made.
pub struct ServiceParts {
    pub editor: Editor,
    pub config: Config,
    pub given: GivenSettings,
    pub executor: Executor,
    pub probe: SandboxProbe,
    pub store: Store,
    pub redactor: Redactor,
    /// The audit file; none if it cannot be created. The person then gets a notice at the start.
    pub audit: Option<Audit>,
    pub places: ServicePaths,
    pub make_provider: MakeProvider,
}

impl Services {
    pub fn new(parts: ServiceParts) -> Self {
        Self {
            buffers: Buffers::new(parts.editor.clone()),
            editor: parts.editor,
            host_settings: Arc::new(Mutex::new(parts.config.hosts.clone())),
            config: parts.config,
            given: parts.given,
            executor: parts.executor,
            probe: parts.probe,
            store: parts.store,
            redactor: parts.redactor,
            audit: parts.audit.map(Arc::new),
            trust_answers: Arc::new(TrustAnswers::new(parts.places.trust.clone())),
            checkpoints: Arc::new(Checkpoints::new(parts.places.checkpoints.clone())),
            places: Arc::new(parts.places),
            jobs: Arc::default(),
            tool_servers: Arc::default(),
            foreground: Foreground::default(),
            make_provider: parts.make_provider,
            values: Arc::default(),
            judges: Arc::default(),
            unaudited: Arc::default(),
            ids: Arc::new(AtomicU64::new(first_id())),
        }
    }

    /// Returns the price of a provider's model, or `None` if the price is unknown.
    pub fn price(&self, provider: &dyn Provider) -> Option<Price> {
        let given = self.config.prices.find(&provider.label());
        given.or_else(|| provider.list_price())
    }

    /// Returns the values from which the settings were made.
    pub fn given(&self) -> &GivenSettings {
        &self.given
    }

    /// Returns a copy with the settings of `new`. Settings that need a restart stay as they are. The redactor of the copy also
    /// removes `secrets`. The new rules about hosts apply to every copy from now on.
    ///
    /// # Errors
    /// The executor refuses a setting.
    pub fn changed(&self, new: &GivenSettings, secrets: &[String]) -> Result<Self, co_exec::Error> {
        let given = self.given.with(new, Applies::Now);
        let given = given.with(new, Applies::NextChat);
        let config = given.config();
        let spill_dir = self.executor.settings().spill_dir.clone();
        let executor = self.executor.with(config.exec_settings(spill_dir))?;
        *self.host_settings.lock() = config.hosts.clone();
        Ok(Self {
            executor,
            probe: self.probe.clone().with_fault(config.confinement_fault()),
            redactor: self.redactor.with(secrets),
            config,
            given,
            ..self.clone()
        })
    }

    /// Returns a copy for a chat that already runs. The copy takes from `new` only the settings that apply at once.
    #[must_use]
    pub fn changed_at_once(&self, new: &Self) -> Self {
        let given = self.given.with(&new.given, Applies::Now);
        Self {
            config: given.config(),
            given,
            // No setting of the executor waits for the next chat.
            executor: new.executor.clone(),
            probe: new.probe.clone(),
            redactor: new.redactor.clone(),
            ..self.clone()
        }
    }

    /// Returns a copy in which `setting` determines the confinement of approved commands.
    ///
    /// # Errors
    /// The reason why this confinement is not possible here.
    pub async fn confined_by(&self, setting: ConfinementSetting) -> Result<Self, SandboxRefusal> {
        let probe = self.probe.with(setting);
        let isolation = probe.isolation().await;
        isolation.approved_words()?;
        if setting == ConfinementSetting::Docker {
            let answer = isolation.check_engine().await;
            answer.map_err(|fault| SandboxRefusal::Unable(fault.to_string()))?;
        }
        Ok(Self {
            probe,
            ..self.clone()
        })
    }

    /// Starts the container of a confinement, and shows the person the notices of the container engine. Does nothing for a
    /// confinement without a container.
    ///
    /// # Errors
    /// The container cannot run commands.
    pub async fn prepare(&self, confinement: &co_exec::Confinement) -> Result<(), String> {
        let mut preparing = std::pin::pin!(self.executor.prepare(confinement));
        let prepared = match timeout(QUIET_WAIT, &mut preparing).await {
            Ok(prepared) => prepared,
            Err(_) => {
                self.notice(NoticeLevel::Info, NO_ANSWER_YET);
                preparing.await
            }
        };
        let notices = prepared.map_err(|error| error.to_string())?;
        for notice in notices {
            self.notice(NoticeLevel::Warn, notice);
        }
        Ok(())
    }

    /// Returns an id for a question, an output block or a job. The id is unique in this backend.
    pub fn id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the judge of a workspace. Sends the person a notice about each error in the workspace's rules.
    pub fn judge(&self, workspace: &Path) -> Arc<Judge> {
        let mut judges = self.judges.lock();
        if let Some(known) = judges.get(workspace)
            && known.settings == self.config.policy
        {
            for message in known.judge.new_problems() {
                self.notice(NoticeLevel::Warn, message);
            }
            return Arc::clone(&known.judge);
        }
        let (saved, mut problems) = match rules::load(&self.places.rules, workspace) {
            Ok(saved) => (saved, Vec::new()),
            Err(error) => (SavedRules::default(), vec![error.to_string()]),
        };
        let (judge, more) = Judge::new(JudgeConfig {
            workspace: workspace.to_owned(),
            home: self.places.home.clone(),
            path: self.places.path.clone(),
            settings: self.config.policy.clone(),
            saved,
            own: self.places.own.clone(),
        });
        problems.extend(more);
        for message in problems {
            self.notice(NoticeLevel::Warn, message);
        }
        let judge = match self.executor.launcher() {
            Some(launcher) => {
                judge.with_launcher(launcher.clone(), self.executor.agent_environment())
            }
            None => judge,
        };
        let judge = Arc::new(judge);
        let known = CachedJudge {
            settings: self.config.policy.clone(),
            judge: Arc::clone(&judge),
        };
        judges.insert(workspace.to_owned(), known);
        judge
    }

    /// Returns true if co tries commands of a workspace before it asks. Uses the rules of the workspace that have been read so
    /// far.
    pub(crate) fn tries_first(&self, workspace: &Path) -> bool {
        let judges = self.judges.lock();
        let known = judges.get(workspace);
        known.is_some_and(|known| known.judge.tries_first())
    }

    /// Returns the git that co itself runs in a judge's workspace.
    pub(crate) fn own_git(&self, judge: &Arc<Judge>) -> OwnGit {
        OwnGit {
            executor: self.executor.clone(),
            probe: self.probe.clone(),
            judge: Arc::clone(judge),
        }
    }

    /// Takes the first checkpoint of a workspace in the background. Then sends Lua the message `no_undo`, which says if commands
    /// have a checkpoint.
    pub(crate) fn prepare_checkpoints(&self, chat: u64, judge: Arc<Judge>) {
        if self.checkpoints.is_ready(judge.root()) {
            return;
        }
        let (checkpoints, editor) = (Arc::clone(&self.checkpoints), self.editor.clone());
        tokio::task::spawn_blocking(move || {
            if let Ok(workspace) = checkpoints.workspace(&judge) {
                workspace.prepare();
            }
            // It may have read the whole workspace.
            co_exec::free_memory::give_back();
            let why = checkpoints.missing(judge.root());
            editor.tell(ToEditor::NoUndo { chat, why });
        });
    }

    /// Drops the surveys and snapshots of workspaces that nobody has used for an hour.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    pub(crate) fn forget_unused(&self) {
        if let Some(launcher) = self.executor.launcher() {
            launcher.surveys().forget_unused(UNUSED_TIME);
        }
        self.checkpoints.forget_unused(UNUSED_TIME);
        co_exec::free_memory::give_back();
    }

    /// Registers a running command of the person. The command stays registered until the returned value is dropped.
    pub async fn person_runs(&self) -> PersonRun {
        if self.checkpoints.is_busy() {
            let checkpoints = Arc::clone(&self.checkpoints);
            let divided = tokio::task::spawn_blocking(move || checkpoints.divide()).await;
            if let Err(error) = divided {
                tracing::error!(%error, "a checkpoint failed");
            }
        }
        self.checkpoints.person_runs()
    }

    /// Saves an allow rule for a workspace. The next judge of the workspace applies the rule.
    ///
    /// # Errors
    /// The file of the rules cannot be written.
    pub async fn save_rule(
        &self,
        workspace: PathBuf,
        rule: co_policy::Pattern,
    ) -> Result<(), String> {
        let (dir, place) = (self.places.rules.clone(), workspace.clone());
        blocking(move || rules::save(&dir, &place, &rule)).await?;
        self.forget_judge(&workspace);
        Ok(())
    }

    /// Returns the current rules about hosts for a workspace, with the hosts that the person has saved.
    ///
    /// # Errors
    /// A sentence: the rules cannot be read. The caller must then deny all hosts, because a rule may deny them.
    pub async fn host_rules(&self, workspace: &Path) -> Result<HostRules, String> {
        let (judge, settings) = (self.judge(workspace), self.host_settings.lock().clone());
        blocking(move || judge.host_rules(settings)).await
    }

    /// Saves hosts that confined commands of a workspace may contact without a question. The next judge of the workspace allows
    /// these hosts.
    ///
    /// # Errors
    /// The file of the rules cannot be written.
    pub async fn save_hosts(
        &self,
        workspace: PathBuf,
        hosts: Vec<co_policy::HostPattern>,
    ) -> Result<(), String> {
        let (dir, place) = (self.places.rules.clone(), workspace.clone());
        blocking(move || rules::save_hosts(&dir, &place, &hosts)).await?;
        self.forget_judge(&workspace);
        Ok(())
    }

    /// Saves the permission to try commands of a workspace before co asks.
    ///
    /// # Errors
    /// The file of the rules cannot be written.
    pub async fn save_try_first(&self, workspace: PathBuf) -> Result<(), String> {
        let (dir, place) = (self.places.rules.clone(), workspace.clone());
        blocking(move || rules::set_try_first(&dir, &place, true)).await?;
        self.forget_judge(&workspace);
        Ok(())
    }

    /// Drops the judge of a workspace, so that the rules are read again for the next verdict.
    pub fn forget_judge(&self, workspace: &Path) {
        self.judges.lock().remove(workspace);
    }

    /// Reads the values of the workspace's secrets before a command may change them. If `may_change` is false, reads only the
    /// values of known secrets.
    pub async fn load_secret_values(&self, workspace: &Path, may_change: bool) {
        let read = self.secret_values(workspace, may_change.then(Instant::now));
        // The same failure withholds the output.
        blocking(move || read().map(|_| ())).await.ok();
    }

    /// Removes the values of the workspace's secrets and the keys in `more` from a text for the model, and returns the text.
    ///
    /// A secret that is known from a check of the workspace after the time `complete_at` is removed. So this must be the time at
    /// which the text was complete: an earlier check may miss a secret that the text contains. A call that only reads files may
    /// give the time at which it began, because it checked then that the files are not secret.
    ///
    ///
    /// # Errors
    /// The secrets cannot be found. The error is a line that the model gets in place of the text.
    pub async fn redact_for_model(
        &self,
        workspace: &Path,
        text: &str,
        more: &[String],
        complete_at: Instant,
    ) -> Result<RedactedText, String> {
        if !self.config.redact {
            return Ok(text.to_owned().into());
        }
        let (redactor, text) = (self.redactor.with(more), text.to_owned());
        let read = self.secret_values(workspace, Some(complete_at));
        let redact = move || Ok::<_, String>(redactor.with_values(read()?).redact(&text));
        (blocking(redact).await).map_err(|why| withheld(&why))
    }

    /// Returns a function that reads the values of the workspace's secrets. The function returns a matcher for these values and
    /// for earlier values from the same files. It blocks on files.
    fn secret_values(
        &self,
        workspace: &Path,
        since: Option<Instant>,
    ) -> impl FnOnce() -> Result<Arc<Matcher>, String> + Send + 'static {
        let values = {
            let mut known = self.values.lock();
            let surveys = || match self.executor.launcher() {
                Some(launcher) => launcher.surveys().clone(),
                None => Surveys::default(),
            };
            let new = || Arc::new(Values::new(workspace.to_owned(), surveys()));
            Arc::clone(known.entry(workspace.to_owned()).or_insert_with(new))
        };
        let judge = self.judge(workspace);
        move || {
            let matcher = values.read(since, judge.tracked());
            matcher.map_err(|error| error.to_string())
        }
    }

    /// Returns the provider that the chat chose, or else the provider of the settings. If an agent works in the chat, the
    /// provider answers no request.
    ///
    /// # Errors
    /// No provider is set up, or its key is missing.
    pub fn provider(&self, choice: &ModelChoice) -> Result<Arc<dyn Provider>, Fault> {
        match &choice.agent {
            Some(name) => Ok(Arc::new(AgentLabel { name: name.clone() })),
            None => (self.make_provider)(&self.config, choice),
        }
    }

    /// Warns the person that co cannot write the audit file. Each chat gets the warning only once.
    pub fn unaudited(&self, chat: &str, error: &audit::Error) {
        let mut known = self.unaudited.lock();
        if known.insert(chat.to_owned()) {
            self.notice(
                NoticeLevel::Warn,
                format!(
                    "{error}; what runs goes unlogged until it can be: free or mend that place"
                ),
            );
        }
    }

    /// Sends a notice to the person.
    pub fn notice(&self, level: NoticeLevel, message: impl Into<String>) {
        self.editor.tell(ToEditor::Notice {
            level,
            message: message.into(),
            answer: false,
        });
    }

    /// Shows the person the answer to a command that they typed.
    pub fn answer(&self, level: NoticeLevel, message: impl Into<String>) {
        self.editor.tell(ToEditor::Notice {
            level,
            message: message.into(),
            answer: true,
        });
    }
}

/// Returns the line that replaces an output that may contain secrets.
pub(crate) fn withheld(why: &str) -> String {
    format!("output withheld: co could not check it for secrets ({why})")
}

/// Returns the first id. The id contains the process id, because Lua may still know ids of an earlier backend. A Lua number can
/// represent the id exactly.
fn first_id() -> u64 {
    (u64::from(std::process::id()) << 24) | 1
}
