//! The setup of the commands `check` and `edit`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::workspace::judge::{Judge, JudgeConfig};
use crate::workspace::rules;
use co_exec::sandbox::Launcher;
use co_policy::rule_files::SavedRules;

/// The settings and directories for `check` and `edit`.
pub struct Setup {
    pub home: PathBuf,
    /// The variable `PATH` of the backend.
    pub path: OsString,
    pub settings: co_policy::PolicySettings,
    /// True if commands run without a question.
    pub auto_confirm: bool,
    /// The directory of the person's saved rules.
    pub rules: Option<PathBuf>,
    /// The paths of co's own files.
    pub own: Vec<PathBuf>,
    pub launcher: Launcher,
}

impl Setup {
    /// Returns the judge of a workspace. Prints faults of the rules to standard error.
    pub(super) fn judge(self, workspace: PathBuf) -> Judge {
        let mut notes = Vec::new();
        let saved = match self
            .rules
            .as_deref()
            .map(|dir| rules::load(dir, &workspace))
        {
            Some(Ok(saved)) => saved,
            Some(Err(error)) => {
                notes.push(error.to_string());
                SavedRules::default()
            }
            None => SavedRules::default(),
        };
        // No later call completes the survey.
        self.launcher.surveys().survey_whole(&workspace);
        let (judge, problems) = Judge::new(JudgeConfig {
            workspace,
            home: self.home,
            path: self.path,
            settings: self.settings,
            saved,
            own: self.own,
        });
        let judge = judge.with_launcher(self.launcher, std::env::vars_os().collect());
        notes.extend(problems);
        for note in notes {
            let _shown = writeln!(io::stderr(), "{note}");
        }
        judge
    }
}
