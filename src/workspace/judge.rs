//! Judges the calls of a model in one workspace, with the policy, the person's rules and the facts about this machine.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::edits::{self, EditPlace, EditRefused, EditRequest};
use super::facts::{Sandbox, WorkspaceFacts};
use super::files::attached::real_path;
use super::files::{self, FileQueryError, PathFilter, PathRule};
use super::job_input;
use super::tracked::TrackedFiles;
use co_exec::beneath;
use co_exec::path_list::PathList;
use co_exec::regular::FileStamp;
use co_exec::repository;
use co_exec::sandbox::{Launcher, SandboxRefusal};
use co_exec::secrets::{Survey, Surveys, content};
use co_exec::watcher::{ChangeMark, Changes};
use co_policy::facts::{Facts, LocalFacts, PathFact};
use co_policy::paths::PathUse;
use co_policy::rule_files::{SavedRules, WorkspaceRules};
use co_policy::secret_names::is_secret;
use co_policy::{
    Assessment, CommandAssessment, HostPattern, HostRules, Pattern, Reason, RuleCommand, Rules,
    Sort, ToolServerCall, Verdict, obeyed, paths, tool_server,
};
use co_text::{counted, one_line, shorten};

/// The name by which rules refer to the tool that types into a job.
pub const JOB_WRITE: &str = "job_write";

/// The largest number of faults in a workspace's rules that the person is told at once. There is a limit because the rules may
/// come from anyone.
const MOST_FAULTS: usize = 5;
/// The largest number of bytes of each fault that the person is told.
const LONGEST_FAULT: usize = 300;

/// The configuration of a [`Judge`].
pub struct JudgeConfig {
    pub workspace: PathBuf,
    pub home: PathBuf,
    /// The PATH of the backend.
    pub path: OsString,
    pub settings: co_policy::PolicySettings,
    /// The rules that the person saved for this workspace.
    pub saved: SavedRules,
    /// co's own files: settings, rules, transcripts and the program.
    pub own: Vec<PathBuf>,
}

/// The parsed `.co/policy.toml` of the workspace, and the stamp of the file when it was parsed.
type CachedRules = (Option<FileStamp>, Result<WorkspaceRules, String>);

/// The paths in a workspace that the model may learn about. Secret files, files of git and co's own files are excluded.
struct Readable {
    judge: Arc<Judge>,
    survey: Arc<Survey>,
    /// The canonical paths of the secret files.
    closed: HashSet<PathBuf>,
}

impl PathRule for Readable {
    fn allows(&self, path: &Path) -> bool {
        self.allows_name(path) && !self.survey.covers(path)
    }

    fn allows_name(&self, path: &Path) -> bool {
        let named = path.file_name().and_then(|name| name.to_str());
        let is_closed = |path: &Path| self.closed.contains(path);
        // A complete survey has looked into the files already.
        let secret = named.is_some_and(is_secret)
            || !self.closed.is_empty() && path.ancestors().any(is_closed)
            || !self.survey.complete && content::is_secret(path)
            || repository::is_gits(path);
        !secret && !self.judge.facts.is_own(path)
    }
}

/// The judge of one workspace.
pub struct Judge {
    facts: WorkspaceFacts,
    rules: Rules,
    /// True if the person lets co try commands of this workspace before it asks.
    tries_first: bool,
    /// The hosts that the person saved for this workspace.
    saved_hosts: Vec<HostPattern>,
    rules_file: PathBuf,
    read: Mutex<Option<CachedRules>>,
    /// The rules as they were when the person was last told about faults in them. The person is not told again about the same
    /// rules.
    told: Mutex<Option<Result<WorkspaceRules, String>>>,
    tracked: TrackedFiles,
    /// The surveys of the workspace, if the judge has no sandbox. The surveys of a sandbox belong to its launcher.
    surveys: Surveys,
}

impl Judge {
    /// Returns the judge with a sandbox: commands that run without approval are started by `launcher`, with the variables `env`.
    #[must_use]
    pub fn with_launcher(self, launcher: Launcher, env: Vec<(OsString, OsString)>) -> Self {
        let facts = self.facts.with_sandbox(Sandbox { launcher, env });
        Self { facts, ..self }
    }

    /// Returns true if co may try commands of this workspace before it asks.
    pub fn tries_first(&self) -> bool {
        self.tries_first
    }

    /// Adds the hosts that the person saved and the rules of the workspace to `rules`. Blocks on files. Call it from
    /// `spawn_blocking`.
    ///
    /// # Errors
    /// A sentence: the rules of the workspace cannot be read, so co does not know the hosts that they deny.
    pub fn host_rules(&self, mut rules: HostRules) -> Result<HostRules, String> {
        let more = self.workspace_rules().map_err(|why| {
            let file = self.rules_file.display();
            format!("{file} cannot be read, so no host is allowed: correct or remove it ({why})")
        })?;
        rules.allow.extend(self.saved_hosts.iter().cloned());
        rules.deny.extend(more.deny_hosts);
        Ok(rules)
    }

    /// Parses the rules. Returns the judge, and a sentence for each fault.
    pub fn new(config: JudgeConfig) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let rules_file = config.workspace.join(".co").join("policy.toml");
        let mut own = config.own;
        own.push(rules_file.clone());
        let tries_first = config.saved.try_first;
        let saved_hosts = config.saved.allow_hosts;
        let rules = rules(&config.settings, config.saved.allow, &mut problems);
        let judge = Self {
            facts: WorkspaceFacts::new(config.workspace, config.home, &config.path, own),
            rules,
            tries_first,
            saved_hosts,
            rules_file,
            read: Mutex::new(None),
            told: Mutex::new(None),
            tracked: TrackedFiles::default(),
            surveys: Surveys::default(),
        };
        problems.extend(judge.new_problems());
        (judge, problems)
    }

    /// Returns a sentence for each fault of the workspace's `.co/policy.toml`, if the file has changed since the last call.
    /// Blocks on files.
    pub fn new_problems(&self) -> Vec<String> {
        let rules = self.workspace_rules();
        let file = self.rules_file.display();
        let mut told = self.told.lock();
        if told.as_ref() == Some(&rules) {
            return Vec::new();
        }
        let problems = match &rules {
            Err(why) => vec![format!(
                "{file} cannot be read, so every command asks: {}",
                shorten(&one_line(why), LONGEST_FAULT)
            )],
            Ok(rules) => {
                let of = |name: &'static str, rules: &[Pattern]| -> Vec<String> {
                    let faults = rules.iter().filter_map(|it| rule_fault(name, it));
                    faults.collect()
                };
                let faults = [of("deny", &rules.deny), of("ask", &rules.ask)].concat();
                let first = faults.iter().take(MOST_FAULTS);
                let first = first.map(|it| shorten(&one_line(it), LONGEST_FAULT));
                let left = faults.len().saturating_sub(MOST_FAULTS);
                let more = format!("{} cannot match either", counted(left, "more rule"));
                let all = first.chain((left > 0).then_some(more));
                all.map(|it| format!("{file}: {it}")).collect()
            }
        };
        *told = Some(rules);
        problems
    }

    /// Assesses a command. `confined` is true if the kernel can confine commands. Blocks on files. Call it from `spawn_blocking`.
    pub fn assess(&self, program: &co_exec::Program, cwd: &Path, confined: bool) -> Assessment {
        let mut found = match program {
            co_exec::Program::Shell(command) => co_policy::assess(command, cwd, &self.facts),
            co_exec::Program::Argv(argv) => co_policy::assess_argv(argv, cwd, &self.facts),
        };
        match confined {
            true if found.looks() => {
                if let Err(why) = self.check_reading() {
                    found.not_confined = Some(why.to_string());
                    found.may_run_unconfined = false;
                }
            }
            true => {}
            false => {
                found.not_confined = Some("the kernel cannot confine commands here".to_owned())
            }
        }
        self.add_workspace_rules(found)
    }

    /// Checks that commands can run at the read-only level in this workspace.
    fn check_reading(&self) -> Result<(), SandboxRefusal> {
        match self.facts.sandbox() {
            Some(Sandbox { launcher, env }) => launcher.check_reading(self.facts.root(), env),
            None => Ok(()),
        }
    }

    /// Checks that commands can run as trials in this workspace. Blocks on files. Call it from `spawn_blocking`.
    ///
    /// # Errors
    /// A sentence with the reason why commands cannot run as trials, and what to do.
    pub fn check_trial(&self) -> Result<(), SandboxRefusal> {
        match self.facts.sandbox() {
            Some(Sandbox { launcher, .. }) => launcher.report().trials(self.facts.root()),
            None => Err(SandboxRefusal::Unable(
                "commands cannot run as trials here: nothing can confine them".to_owned(),
            )),
        }
    }

    /// Judges a file query. Its path must be in the workspace, and must not be a secret. Rules can forbid the query by the name
    /// of the tool, such as `read_file docs`. No rule can allow a path outside of the workspace.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    pub fn judge_query(&self, tool: &str, path: &str, wanted: PathUse, cwd: &Path) -> Verdict {
        let words = vec![tool.to_owned(), path.to_owned()];
        let own = self.own_problem(path, &self.facts.path(cwd, path));
        let problems: Vec<Reason> = self
            .path_problem(path, wanted, cwd, Instant::now())
            .into_iter()
            .chain(own)
            .collect();
        let uncovered = problems.first().cloned();
        let found = self.add_workspace_rules(Assessment {
            in_process: true,
            problems: problems.clone(),
            ..of_tool(words, CommandAssessment::default(), uncovered)
        });
        match self.verdict(&found, &[]) {
            Verdict::Allow(_) if !problems.is_empty() => {
                Verdict::Ask(co_policy::ApprovalQuestion {
                    reasons: problems,
                    ..co_policy::ApprovalQuestion::default()
                })
            }
            verdict => verdict,
        }
    }

    /// Returns the canonical path of a file query, which started at the time `started`. Afterwards, opening this path follows no
    /// symbolic link.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    ///
    /// # Errors
    /// The file does not exist, or may not be read without approval. The path may lead to another file than when the query was
    /// judged.
    pub fn query_place(
        &self,
        path: &str,
        wanted: PathUse,
        cwd: &Path,
        started: Instant,
    ) -> Result<PathBuf, FileQueryError> {
        let real = cwd.join(path).canonicalize();
        let real =
            real.map_err(|error| FileQueryError(format!("Cannot look at {path}: {error}.")))?;
        match self.problem_of(&real, wanted, started) {
            Some(why) => Err(FileQueryError(format!("Refused: {why}."))),
            None => Ok(real),
        }
    }

    /// Returns the files that an edit would change.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    ///
    /// # Errors
    /// A path is outside the workspace, or is a secret, one of co's own files, or not a file.
    pub fn edit_places(
        &self,
        request: &EditRequest,
        cwd: &Path,
    ) -> Result<Vec<EditPlace>, EditRefused> {
        let paths = request.paths().into_iter();
        paths.map(|path| self.edit_place(path, cwd)).collect()
    }

    /// Returns a file that an edit would change.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    ///
    /// # Errors
    /// The errors of [`Self::edit_places`].
    pub fn edit_place(&self, path: &str, cwd: &Path) -> Result<EditPlace, EditRefused> {
        let refuse = |why: &str| EditRefused(format!("{why}, so co does not change it"));
        if path.is_empty() || path.ends_with('/') {
            return Err(refuse(&format!("`{path}` does not name a file")));
        }
        let fact = self.facts.path(cwd, path);
        // The person is asked about the workspace's rules as about other files that co obeys.
        let rules = fact
            .inside
            .as_ref()
            .is_some_and(|it| self.facts.root().join(&it.real) == self.rules_file);
        let own = self.own_problem(path, &fact).filter(|_| !rules);
        let now = Instant::now();
        let problems = self.path_problem(path, PathUse::ReadFile, cwd, now);
        let problems = problems.or(own);
        match (problems, fact.inside) {
            (Some(reason), _) => Err(refuse(&reason.text)),
            (None, None) => Err(refuse(&format!("`{path}` is outside the workspace"))),
            (None, Some(inside)) => {
                // Others may know the file by the name of a link.
                let named = cwd.join(path);
                let named = match named.strip_prefix(self.facts.root()) {
                    Ok(below) => below,
                    Err(_) => Path::new(named.file_name().unwrap_or_default()),
                };
                let real = self.facts.root().join(&inside.real);
                let known = obeyed::reason(&inside.real).or_else(|| obeyed::reason(named));
                Ok(EditPlace {
                    obeyed: known.or_else(|| self.obeyed_link_to(&real, now)),
                    shown: inside.real.display().to_string(),
                    root: self.facts.root().to_owned(),
                    real,
                    is_link: cwd.join(path).is_symlink(),
                })
            }
        }
    }

    /// Returns the reason why an edit requires approval because of a link: other programs run or load a link that leads to the
    /// file, or to a directory above the file. Returns `None` if there is no such link.
    fn obeyed_link_to(&self, real: &Path, since: Instant) -> Option<String> {
        let root = self.facts.root();
        let survey = self.survey_since(since);
        let mut links = survey.links().filter_map(|link| {
            let below = link.strip_prefix(root).ok()?;
            let why = obeyed::reason(below)?;
            let target = link.parent()?.join(link.read_link().ok()?);
            Some((below, why, real_path(&target)))
        });
        // A link to the workspace itself would make every edit ask.
        let (link, why, _) =
            links.find(|(_, _, target)| target != root && real.starts_with(target))?;
        Some(format!(
            "`{}` leads to it: {why}",
            co_text::one_line(&link.to_string_lossy())
        ))
    }

    /// Judges a change of files. It requires approval unless a rule names the tool and the files. A change of a file that other
    /// programs run, or that co loads, always requires approval.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    pub fn judge_edit(
        &self,
        request: &EditRequest,
        places: &[EditPlace],
        chat_rules: &[Pattern],
    ) -> Verdict {
        let words = request.words(places);
        let changes = CommandAssessment {
            sort: Sort::Changes,
            does: request.does().to_owned(),
            ..CommandAssessment::default()
        };
        let found = self.add_workspace_rules(of_tool(words, changes, None));
        let obeyed = places.iter().find_map(|it| it.obeyed.clone());
        match (self.verdict(&found, chat_rules), obeyed) {
            (Verdict::Allow(_) | Verdict::Ask(_), Some(why)) => {
                Verdict::Ask(co_policy::ApprovalQuestion {
                    unread: true,
                    ..co_policy::ApprovalQuestion::because(why)
                })
            }
            (verdict, _) => verdict,
        }
    }

    /// Returns the reason why co may not send a file to the model without approval: the file is outside the workspace, a secret,
    /// or one of co's own files. `real` is the canonical path of the file.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    pub fn reading_problem(&self, real: &Path) -> Option<String> {
        self.problem_of(real, PathUse::ReadFile, Instant::now())
    }

    fn problem_of(&self, real: &Path, wanted: PathUse, since: Instant) -> Option<String> {
        let root = self.facts.root();
        let Some(path) = real.to_str() else {
            return Some("its name is not UTF-8".to_owned());
        };
        let own = self.own_problem(path, &self.facts.path(root, path));
        let problem = self.path_problem(path, wanted, root, since).or(own);
        problem.map(|reason| reason.text)
    }

    /// Returns the secret files that git tracks, as paths relative to the workspace.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    pub fn tracked_secrets(&self) -> Vec<PathBuf> {
        let Some(tracked) = self.tracked() else {
            return Vec::new();
        };
        let survey = self.survey();
        let secrets = survey.files.iter().chain(&survey.within);
        let below = secrets.filter_map(|file| file.strip_prefix(self.facts.root()).ok());
        let below: HashSet<&Path> = below.collect();
        let tracked = tracked.iter();
        tracked.filter(|file| below.contains(&**file)).collect()
    }

    /// Returns the reason why a path may not be used without approval: it is outside the workspace, or a secret.
    fn path_problem(
        &self,
        path: &str,
        wanted: PathUse,
        cwd: &Path,
        since: Instant,
    ) -> Option<Reason> {
        let local = LocalFacts {
            facts: &self.facts,
            cwd,
        };
        paths::check(&local, path, wanted, &(0..0)).or_else(|| {
            let inside = self.facts.path(cwd, path).inside?;
            let real = self.facts.root().join(inside.real);
            let why = if self.survey_since(since).covers(&real) {
                "may be a secret: it has another name, or cannot be listed"
            } else if repository::is_below_gits(self.facts.root(), &real) {
                "is in a git directory"
            } else {
                return None;
            };
            Some(Reason::whole(format!("`{path}` {why}")))
        })
    }

    /// Returns the reason why a path may not be used without approval, if one of co's own files is there.
    fn own_problem(&self, path: &str, fact: &PathFact) -> Option<Reason> {
        let why = || Reason::whole(format!("`{path}` is a file of co's own"));
        fact.co_file.then(why)
    }

    /// Judges a text that the model types into a job. The text requires approval unless a rule names the tool `job_write`, or
    /// `allowed` says that the person allowed input for this job. The job may be a shell, so deny rules apply to each line as to
    /// a command. `before` is the part of the first line that was already typed.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    pub fn judge_input(&self, text: &str, before: &str, cwd: &Path, allowed: bool) -> Verdict {
        let (mut destructive, mut unread) = (false, false);
        for line in job_input::lines(before, text) {
            let shell = co_policy::assess(&line, cwd, &self.facts);
            destructive |= shell.destructive;
            unread |= shell.unread;
            if let denied @ Verdict::Deny { .. } =
                self.verdict(&self.add_workspace_rules(shell), &[])
            {
                return denied;
            }
        }
        let types = CommandAssessment {
            sort: Sort::Unknown,
            does: "types into a job, whose program decides what that means".to_owned(),
            ..CommandAssessment::default()
        };
        let found = self.add_workspace_rules(Assessment {
            destructive,
            unread,
            ..of_tool(vec![JOB_WRITE.to_owned()], types, None)
        });
        let chat = allowed.then(|| Pattern::exact(JOB_WRITE));
        self.verdict(&found, chat.as_slice())
    }

    /// Judges a call of a tool server. `acts` describes the possible effects of the server, if they need approval.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    pub fn judge_server_call(
        &self,
        call: &ToolServerCall,
        acts: Option<&str>,
        chat_rules: &[Pattern],
    ) -> Verdict {
        let rules = (&self.rules, chat_rules);
        tool_server::decide(call, acts, rules, self.workspace_rules())
    }

    /// Returns the canonical path of the workspace.
    pub fn root(&self) -> &Path {
        self.facts.root()
    }

    /// Returns the path of the person's git. A git inside the workspace is never used.
    pub fn git(&self) -> Option<PathBuf> {
        self.facts.git()
    }

    /// Returns the files that git tracks, as paths relative to the workspace; none if there is no index that can be read.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    pub fn tracked(&self) -> Option<PathList> {
        self.tracked.list(self.facts.root())
    }

    /// Returns a filter for a walk through the workspace. The filter returns false for secrets, for files of git, and for co's
    /// own files.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    pub fn readable(self: &Arc<Self>) -> PathFilter {
        self.readable_by(self.survey())
    }

    /// Returns the filter of [`Self::readable`], made from a survey that was checked after the time `since`.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    pub fn readable_since(self: &Arc<Self>, since: Instant) -> PathFilter {
        self.readable_by(self.survey_since(since))
    }

    /// Returns the filter of [`Self::readable`], made from an existing survey of this workspace.
    pub fn readable_by(self: &Arc<Self>, survey: Arc<Survey>) -> PathFilter {
        Arc::new(Readable {
            judge: Arc::clone(self),
            closed: survey.closed_names().map(Path::to_owned).collect(),
            survey,
        })
    }

    /// Returns true if the model may learn about a file: it is in the workspace, is not a secret, and is not one of co's own
    /// files.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    pub fn shows(&self, file: &Path) -> bool {
        let Some(path) = file.to_str().filter(|_| file.is_absolute()) else {
            return false;
        };
        let root = self.facts.root();
        let fact = self.facts.path(root, path);
        let inside = fact.inside.is_some();
        let own = self.own_problem(path, &fact);
        let problem = || self.path_problem(path, PathUse::Read, root, Instant::now());
        inside && own.is_none() && problem().is_none()
    }

    /// Returns a survey of the workspace, which contains its secrets and its other files.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    pub fn survey(&self) -> Arc<Survey> {
        self.surveys().current(self.facts.root())
    }

    fn survey_since(&self, moment: Instant) -> Arc<Survey> {
        self.surveys().since(self.facts.root(), moment)
    }

    /// Starts to watch the workspace in the background, so that later surveys read only changed directories.
    pub fn watch(&self) {
        self.surveys().watch(self.facts.root());
    }

    /// Returns the directories of the workspace that may have changed since a mark. Call it before you read these directories.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    pub fn changes(&self, since: Option<&ChangeMark>) -> Changes {
        self.surveys().watchers().changes(self.facts.root(), since)
    }

    fn surveys(&self) -> &Surveys {
        let sandbox = self.facts.sandbox();
        sandbox.map_or(&self.surveys, |sandbox| sandbox.launcher.surveys())
    }

    fn add_workspace_rules(&self, mut found: Assessment) -> Assessment {
        match self.workspace_rules() {
            Ok(rules) => {
                found.workspace_deny = rules.deny;
                found.workspace_ask = rules.ask;
            }
            Err(why) => found.workspace_error = Some(why),
        }
        found
    }

    /// Returns the deny rules of the person and of the workspace.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    pub fn deny_rules(&self) -> Vec<Pattern> {
        let more = self.workspace_rules().unwrap_or_default().deny;
        self.rules.deny.iter().cloned().chain(more).collect()
    }

    /// Applies the person's rules and the rules of the chat to an assessment, and returns the verdict.
    pub fn verdict(&self, assessment: &Assessment, chat_rules: &[Pattern]) -> Verdict {
        co_policy::decide(assessment, &self.rules, chat_rules)
    }

    /// Returns the rules of the workspace's `.co/policy.toml`, which can only make the policy stricter. Reads the file again if
    /// it has changed.
    fn workspace_rules(&self) -> Result<WorkspaceRules, String> {
        let stamp = FileStamp::of(&self.rules_file);
        let mut read = self.read.lock();
        if let Some((seen, result)) = read.as_ref()
            && *seen == stamp
        {
            return result.clone();
        }
        let result = match beneath::text_resolved(&self.rules_file) {
            Ok(text) => WorkspaceRules::read(&text),
            Err(error)
                if error.kind() == std::io::ErrorKind::NotFound
                    && self.rules_file.symlink_metadata().is_err() =>
            {
                Ok(WorkspaceRules::default())
            }
            Err(error) => Err(error.to_string()),
        };
        *read = Some((stamp, result.clone()));
        result
    }
}

/// Returns the assessment of a tool call. The call is treated as a command that consists of `words`.
fn of_tool(words: Vec<String>, found: CommandAssessment, uncovered: Option<Reason>) -> Assessment {
    let command = CommandAssessment {
        name: words.clone(),
        words: words.clone(),
        ..found
    };
    Assessment {
        command: co_policy::rules::join(&words),
        commands: vec![command],
        literal: Some(vec![RuleCommand {
            words,
            uncovered,
            ..RuleCommand::default()
        }]),
        ..Assessment::default()
    }
}

/// Returns a sentence for each fault of the rules in the settings.
pub fn rule_faults(settings: &co_policy::PolicySettings) -> Vec<String> {
    let mut problems = Vec::new();
    rules(settings, Vec::new(), &mut problems);
    problems
}

/// Returns a sentence with the reason why a rule of the list `name` cannot match anything; none if it can match something.
fn rule_fault(name: &str, rule: &Pattern) -> Option<String> {
    // A deny rule turns the tool off.
    if rule.program() == Some(edits::RENAME) && name != "deny" {
        return Some(format!(
            "`{name}`: the rule `{rule}` matches nothing, because a rename is judged as an edit of each file: name edit_file"
        ));
    }
    let what = tool_server::fault(rule)?;
    Some(format!(
        "`{name}`: the rule `{rule}` matches no call of a tool server: {what}"
    ))
}

fn rules(
    settings: &co_policy::PolicySettings,
    saved: Vec<Pattern>,
    problems: &mut Vec<String>,
) -> Rules {
    let mut list = |name: &str, texts: &[String]| -> Vec<Pattern> {
        let mut patterns = Vec::new();
        for text in texts {
            match text.parse::<Pattern>() {
                Ok(pattern) => {
                    problems.extend(rule_fault(name, &pattern));
                    patterns.push(pattern);
                }
                Err(error) => problems.push(format!("`{name}`: {error}")),
            }
        }
        patterns
    };
    let rules = Rules {
        safe: settings
            .safe_commands
            .as_ref()
            .map(|texts| list("shell_safe_commands", texts)),
        allow: list("allow", &settings.allow),
        ask: list("ask", &settings.ask),
        deny: list("deny", &settings.deny),
        lifted: settings.deny_lifted.clone(),
        saved,
    };
    for pattern in rules.safe.iter().flatten() {
        let program = pattern.program().unwrap_or_default();
        let why = match pattern.may_look() {
            _ if files::NAMES.contains(&program) => continue,
            _ if pattern.is_about_tool_servers() => continue,
            Some(true) => continue,
            Some(false) => format!("`{pattern}` does not only look"),
            None => format!("co does not know what `{program}` does"),
        };
        problems.push(format!(
            "`shell_safe_commands`: {why}, so this entry has no effect; to let it run, put `{pattern}` into `allow`"
        ));
    }
    for name in &settings.deny_lifted {
        if !co_policy::DENY_RULES.contains(&name.as_str()) {
            problems.push(format!(
                "`shell_lift_deny`: there is no rule `{name}`; the rules are {}",
                co_policy::DENY_RULES.join(", ")
            ));
        }
    }
    rules
}

/// Returns the nearest directory at or above `cwd` that contains `.git`. If there is none, returns `cwd` itself.
pub fn workspace_of(cwd: &Path) -> PathBuf {
    cwd.ancestors()
        .find(|dir| {
            let dot = dir.join(".git");
            dot.symlink_metadata().is_ok() && !repository::is_empty(&dot)
        })
        .unwrap_or(cwd)
        .to_owned()
}
