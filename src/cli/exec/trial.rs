//! `co-nvim exec --try`: runs a command over a layer, shows its changes, and keeps or drops them.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::request::Machine;
use super::request::{AfterTrial, ExecRequest};
use super::terminal;
use crate::buffers::OpenBuffers;
use crate::checkpoint::{ChangeCause, Checkpoints, Store};
use crate::paths::Paths;
use crate::protocol::FactLine;
use crate::trial::{Layers, NotKept, TrialChanges, TrialPlace, ended_by_itself, keeping};
use crate::workspace::confinement_hint::may_have_failed;
use crate::workspace::judge::{Judge, JudgeConfig, workspace_of};
use co_exec::sandbox::{Launcher, Removals};
use co_exec::{CommandOutcome, Confinement, Executor, Program};
use co_llm::transcript::Decision;
use co_policy::PolicySettings;
use co_text::{counted, printable};

/// The exit status if a change was not kept although it should have been.
const NOT_KEPT: u8 = 123;

/// The reason why the changes of a killed command are dropped.
const KILLED: &str = "the command did not end by itself, so its changes are dropped";

/// The state of a trial, before and after its command.
pub(super) struct Trial {
    place: TrialPlace,
    removals: Removals,
    checkpoints: Checkpoints,
    after: AfterTrial,
    /// The command as text.
    what: String,
}

/// A trial that has ended, with its changes.
pub(super) struct FinishedTrial<'a> {
    trial: &'a Trial,
    /// The changes and the report about them, or the reason why the changes are unknown.
    found: Result<(TrialChanges, Report), String>,
    /// True if the command ended by itself.
    is_whole: bool,
    /// The changes that could not be kept, although the rest was kept. It is `None` if no changes were kept.
    kept: Option<Vec<NotKept>>,
    /// The reason why no change could be kept.
    problem: Option<String>,
}

/// The changes that can be kept, in the output format that the options choose.
enum Report {
    Text { diff: String, facts: Vec<FactLine> },
    Json(Vec<Value>),
}

impl Trial {
    /// Makes the layer of the trial. First completes the changes of files that an earlier co did not complete because it was
    /// killed.
    ///
    /// # Errors
    /// The system has no trials, or co cannot write its state. The error is a sentence for the person.
    pub(super) fn begin(machine: &Machine, request: &ExecRequest) -> Result<Self, String> {
        let is_terminal = terminal::is_there();
        let after = match request.after_trial {
            Some(AfterTrial::Ask) if !is_terminal => {
                return Err("--ask needs a terminal: give --keep or --drop".to_owned());
            }
            None if is_terminal && !request.json => AfterTrial::Ask,
            after => after.unwrap_or(AfterTrial::Drop),
        };
        let launcher = &machine.launcher;
        let root = workspace_of(&request.cwd);
        let trials = launcher.report().trials(&root);
        trials.map_err(|why| why.to_string())?;
        let checkpoints = Checkpoints::new(machine.paths.checkpoints());
        for interrupted in checkpoints.finish() {
            say(&format!("co-nvim: {interrupted}"));
        }
        let store = checkpoints.store().map_err(|error| error.to_string())?;
        let judge = judge(
            launcher,
            &machine.paths,
            root.clone(),
            machine.paths.home.clone(),
        );
        let layers = machine.paths.layers();
        let removals = Removals::default();
        let layers = Layers {
            dir: &layers,
            most_left: machine.settings.trial_cache,
            removals: &removals,
        };
        // Nobody can be asked, so the command waits for the whole survey.
        let survey = |_: &Judge| launcher.surveys().survey_whole(&root);
        let place = TrialPlace::new(judge, store, &layers, survey);
        let place = place.map_err(|error| error.to_string())?;
        Ok(Self {
            place,
            removals,
            checkpoints,
            after,
            what: match &request.program {
                Program::Shell(line) => line.clone(),
                Program::Argv(argv) => argv.join(" "),
            },
        })
    }

    pub(super) fn confinement(&self) -> Confinement {
        self.place.confinement()
    }

    /// Reads the changes of the command. With `--json`, also keeps them if an option says so. If the returned future is dropped,
    /// nothing is kept.
    pub(super) async fn ended(
        &self,
        outcome: &CommandOutcome,
        json: bool,
        executor: &Executor,
    ) -> FinishedTrial<'_> {
        let withheld = outcome.withheld;
        let report = move |found: &TrialChanges, store: &Store| match json {
            true => Report::Json(found.changes_json(store, withheld)),
            false => Report::Text {
                diff: found.diff(store),
                facts: found.facts(store),
            },
        };
        let found = self.place.read(outcome, executor, report).await;
        // From here on nothing waits, so no signal ends it half-way.
        let mut tried = FinishedTrial {
            trial: self,
            found,
            is_whole: ended_by_itself(outcome),
            kept: None,
            problem: None,
        };
        if let Ok((found, _)) = &mut tried.found {
            let may_stay = tried.is_whole && !may_have_failed(outcome);
            self.place.settle_ignored(found, may_stay);
        }
        if json && self.after == AfterTrial::Keep && tried.is_whole {
            tried.keep();
        }
        tried
    }

    /// Removes the layer, within the time `limit`. If the time is too short, the next trial removes the rest.
    pub(super) async fn remove(self, limit: Duration) {
        drop(self.place);
        self.removals.finished(limit).await;
    }
}

impl FinishedTrial<'_> {
    /// Returns the diff of the changes for standard output.
    pub(super) fn diff(&self) -> String {
        match &self.found {
            // A file may have text that moves the cursor.
            Ok((_, Report::Text { diff, .. })) if io::stdout().is_terminal() => printable(diff),
            Ok((_, Report::Text { diff, .. })) => diff.clone(),
            Ok((_, Report::Json(_))) | Err(_) => String::new(),
        }
    }

    /// Returns the result of the trial as JSON.
    pub(super) fn json(&self) -> Value {
        let mut object = match &self.found {
            Ok((found, Report::Json(changes))) => found.json(changes),
            Ok((found, Report::Text { .. })) => found.json(&[]),
            Err(why) => json!({ "error": why }),
        };
        object["kept"] = self.kept.is_some().into();
        if let Some(why) = &self.problem {
            object["error"] = why.as_str().into();
        }
        if let (Some(left), Some(Value::Array(not_kept))) = (&self.kept, object.get_mut("not_kept"))
        {
            not_kept.extend(left.iter().map(NotKept::json));
        }
        object
    }

    /// Prints which changes cannot be kept. Then keeps or drops the remaining changes, as the options say or the person answers.
    /// Returns the exit status if it differs from the exit status of the command. The future of `told` completes when a signal
    /// arrives.
    pub(super) async fn settle(&mut self, told: impl AsyncFnOnce()) -> Option<u8> {
        let (found, report) = match &self.found {
            Ok(found) => found,
            Err(why) => {
                say(&format!("co-nvim: {why}"));
                return self.status();
            }
        };
        for note in found.notes(usize::MAX) {
            say(&format!("co-nvim: {note}"));
        }
        let count = match found.count() {
            0 => return self.status(),
            count => counted(count, "file"),
        };
        let keeps = match self.trial.after {
            AfterTrial::Drop => false,
            AfterTrial::Ask => {
                if let Report::Text { facts, .. } = report {
                    facts.iter().for_each(|fact| say(&fact.text));
                }
                asks(&format!("keep {count}? [y/N] "), told).await
            }
            AfterTrial::Keep if !self.is_whole => {
                say(&format!("co-nvim: {KILLED}"));
                false
            }
            AfterTrial::Keep => true,
        };
        if !keeps {
            say(&format!("[{count} dropped]"));
            return None;
        }
        self.keep();
        if let Some(why) = &self.problem {
            say(&format!("co-nvim: nothing is kept: {why}"));
            return Some(NOT_KEPT);
        }
        for left in self.kept.iter().flatten() {
            say(&format!("co-nvim: {}", left.sentence()));
        }
        say(match self.status() {
            Some(_) => "[kept in part]",
            None => "[kept]",
        });
        self.status()
    }

    /// Returns the exit status if it differs from the exit status of the command: a change was not kept although it should have
    /// been.
    pub(super) fn status(&self) -> Option<u8> {
        let wanted = self.trial.after == AfterTrial::Keep && self.is_whole;
        let all = self.found.as_ref().is_ok_and(|(found, _)| {
            let kept = self.kept.as_ref();
            let is_nothing = found.changes.is_empty();
            found.not_kept.is_empty()
                && found.git.is_empty()
                && kept.map_or(is_nothing, Vec::is_empty)
        });
        ((wanted || self.kept.is_some()) && !all).then_some(NOT_KEPT)
    }

    /// Returns true if there are changes and none of them is kept.
    pub(super) fn is_lost(&self) -> bool {
        let has_changes = |(it, _): &(TrialChanges, Report)| it.count() > 0;
        self.found.as_ref().is_ok_and(has_changes) && self.kept.is_none()
    }

    fn keep(&mut self) {
        let Ok((found, _)) = &mut self.found else {
            return;
        };
        let place = &self.trial.place;
        let (root, open) = (place.root(), OpenBuffers::new());
        let undo = keeping(&found.changes, root, place.store(), &open);
        let mut left = undo.kept.clone();
        let checkpoints = &self.trial.checkpoints;
        let by = ChangeCause::change(self.trial.what.clone(), Decision::Approved);
        match checkpoints.make(undo, root, by) {
            Ok(done) => left.extend(done.failed),
            Err(error) => {
                self.problem = Some(error.to_string());
                return;
            }
        }
        if left.is_empty() {
            place.leave_ignored(found);
        }
        let left = left.into_iter().map(|(path, why)| NotKept { path, why });
        self.kept = Some(left.collect());
    }
}

/// Returns the judge of a workspace, which knows the secret files. It is not used to judge commands here, so it has no rules.
pub(super) fn judge(
    launcher: &Launcher,
    paths: &Paths,
    workspace: PathBuf,
    home: PathBuf,
) -> Arc<Judge> {
    let (judge, _problems) = Judge::new(JudgeConfig {
        workspace,
        home,
        path: std::env::var_os("PATH").unwrap_or_default(),
        settings: PolicySettings::default(),
        saved: Default::default(),
        own: paths.own(),
    });
    Arc::new(judge.with_launcher(launcher.clone(), std::env::vars_os().collect()))
}

/// Asks a question on the terminal. Returns false if a signal arrives first.
async fn asks(question: &str, told: impl AsyncFnOnce()) -> bool {
    tokio::select! {
        answer = terminal::yes(question) => answer,
        () = told() => {
            say("");
            false
        }
    }
}

pub(super) fn say(line: &str) {
    // If standard error is closed, nobody can be told.
    let _shown = writeln!(io::stderr().lock(), "{line}");
}
