//! Commands that are proved to only look, as policy gives them to the executor.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use co_exec::sandbox::Support;
use co_exec::{Confinement, Error, Launcher, Outcome, Program, ShownSecrets, Spec};
use co_policy::facts::{
    Facts, FileKind, GitFact, PathFact, ProgramFact, RiskyFiles, WorkspacePath,
};
use co_policy::{Grant, Rules, Verdict, glob};
use tempfile::TempDir;

use super::{BINARY, Bench};

/// A workspace in which every path is a file, every program is trusted and every glob matches `matches`.
struct Harmless {
    matches: Vec<String>,
}

impl Facts for Harmless {
    fn program(&self, name: &str, _: &Path) -> ProgramFact {
        ProgramFact::Trusted(Path::new("/usr/bin").join(name))
    }

    fn path(&self, cwd: &Path, path: &str) -> PathFact {
        PathFact {
            inside: Some(WorkspacePath {
                written: path.into(),
                real: path.into(),
            }),
            kind: FileKind::File,
            enterable: false,
            absolute: cwd.join(path),
            secret: false,
            co_file: false,
            holds_co_files: false,
            home: false,
        }
    }

    fn glob(&self, _: &Path, _: &glob::Glob) -> Option<Vec<String>> {
        Some(self.matches.clone())
    }

    fn git(&self, _: &Path) -> GitFact {
        GitFact::default()
    }

    fn find_upward(&self, _: &Path, _: &[&str]) -> Option<PathBuf> {
        None
    }

    fn risky_files(&self, _: &Path) -> RiskyFiles {
        RiskyFiles::default()
    }

    fn risky_tracked_files(&self, _: &Path) -> RiskyFiles {
        RiskyFiles::default()
    }

    fn committed_secrets(&self, _: &Path) -> Option<Arc<[PathBuf]>> {
        Some(Vec::new().into())
    }
}

/// Returns a command as policy rewrites it.
fn proved(command: &str, matches: Vec<String>) -> Program {
    let found = co_policy::assess(command, Path::new("/"), &Harmless { matches });
    match co_policy::decide(&found, &Rules::default(), &[]) {
        Verdict::Allow(Grant::Proof(proved)) => Program::Proved(Box::new(proved)),
        other => panic!("`{command}` is not proved: {other:?}"),
    }
}

/// A workspace, and the confinement that reads it.
struct Place {
    _dir: TempDir,
    workspace: PathBuf,
    read_only: Confinement,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a workspace");
        let workspace = dir.path().canonicalize().expect("its real path");
        Self {
            _dir: dir,
            read_only: Confinement::ReadOnly {
                workspace: workspace.clone(),
            },
            workspace,
        }
    }

    async fn try_to_run(
        &self,
        bench: &Bench,
        program: Program,
        confinement: Confinement,
    ) -> Result<Outcome, Error> {
        let spec = Spec {
            program,
            cwd: self.workspace.clone(),
            confinement,
            ..bench.spec("")
        };
        Ok(bench.executor.start(spec).await?.outcome().await)
    }

    async fn run(&self, bench: &Bench, program: Program, confinement: Confinement) -> Outcome {
        let outcome = self.try_to_run(bench, program, confinement).await;
        outcome.expect("it starts")
    }
}

/// An executor on a system that cannot confine commands.
fn without_sandbox() -> Bench {
    Bench::with(|setup| {
        let (exe, none) = (BINARY.into(), Support::none("no Landlock"));
        let launcher = Launcher::with_support(exe, "/nonexistent".into(), Vec::new(), none);
        setup.launcher = Some(launcher);
    })
}

#[tokio::test]
async fn a_long_script_comes_through_a_descriptor_that_its_programs_do_not_get() {
    let place = Place::new();
    let command = "printf '%s' * | wc -c; ls -l /proc/self/fd/";
    let program = proved(command, vec!["it's é".to_owned(); 20_000]);
    let (confined, bare) = (Bench::with_launcher(|_| {}), without_sandbox());
    for (bench, confinement) in [
        (&confined, place.read_only.clone()),
        (&bare, Confinement::Plain),
    ] {
        let outcome = place.run(bench, program.clone(), confinement).await;
        let output = &outcome.output;
        assert!(output.starts_with("140000\n"), "{outcome:?}");
        assert!(
            output.contains(" 1 -> ") && !output.contains("memfd"),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_proved_command_brings_its_environment() {
    let place = Place::new();
    let program = || {
        proved(
            "git --version; grep -c LC_ALL=C /proc/self/environ",
            Vec::new(),
        )
    };
    let bench = Bench::with_launcher(|setup| {
        setup.env = vec![("LC_ALL".into(), "xx_XX".into())];
    });
    let outcome = place.run(&bench, program(), place.read_only.clone()).await;
    assert!(outcome.output.ends_with("\n1\n"), "{outcome:?}");
}

#[tokio::test]
async fn a_proved_command_runs_in_the_read_only_sandbox_or_not_at_all() {
    let place = Place::new();
    let program = || proved("echo x", Vec::new());
    let writes = Confinement::Workspace {
        workspace: place.workspace.clone(),
        network: false,
        shown: ShownSecrets::Nothing,
    };
    let confined = Bench::with_launcher(|_| {});
    for confinement in [Confinement::Plain, writes.clone()] {
        let refused = place.try_to_run(&confined, program(), confinement).await;
        let told = refused.expect_err("it does not start").to_string();
        assert!(told.contains("outside the read-only sandbox"), "{told}");
    }
    let outcome = place
        .run(&confined, program(), place.read_only.clone())
        .await;
    assert_eq!(
        (outcome.output.as_str(), outcome.level),
        ("x\n", "read-only")
    );
    // The person chose to run such commands where nothing can confine them.
    let bare = without_sandbox();
    let outcome = place.run(&bare, program(), Confinement::Plain).await;
    assert_eq!((outcome.output.as_str(), outcome.level), ("x\n", "plain"));
    assert!(place.try_to_run(&bare, program(), writes).await.is_err());
}
