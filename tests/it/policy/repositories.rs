//! Hostile repositories: each names a program that leaves a mark if git runs it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use co::tool::judge::Judge;
use co_policy::{Grant, PolicySettings, Verdict};

use super::world::{World, verdict_in, word};

pub(super) struct Trap {
    pub(super) world: World,
    mark: PathBuf,
    program: PathBuf,
}

/// Commands of git that run unasked in an honest repository.
pub(super) const COMMANDS: [&str; 14] = [
    "git status",
    "git status -sb",
    "git diff",
    "git diff HEAD",
    "git diff HEAD~1",
    "git log -p -3",
    "git log --stat",
    "git show HEAD",
    "git blame a.txt",
    "git grep -n x",
    "git ls-files -m",
    "git describe --always --dirty",
    "git stash list",
    "git log --oneline -3",
];

impl Trap {
    pub(super) fn new() -> Self {
        let world = World::new();
        fs::remove_dir_all(world.workspace.join("nested-repo")).unwrap();
        for secret in [".env", "server.pem"] {
            fs::remove_file(world.workspace.join(secret)).unwrap();
        }
        let mark = world.home.join("mark");
        let program = world.home.join("trap.sh");
        let text = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", mark.display());
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(world.workspace.join("a.txt"), "one\nchanged\n").unwrap();
        world.commit("second");
        fs::write(world.workspace.join("a.txt"), "one\nchanged again\n").unwrap();
        Self {
            world,
            mark,
            program,
        }
    }

    fn config(&self, key: &str, value: &str) {
        self.world.git(&["config", "--local", key, value]);
    }

    fn path(&self) -> &str {
        self.program.to_str().expect("temporary paths are text")
    }

    pub(super) fn judge(&self) -> Judge {
        self.world.judge(PolicySettings::default()).0
    }

    /// Runs what the judge lets run, as it says, and returns how many commands it let run.
    pub(super) fn run_allowed(&self) -> usize {
        let judge = self.judge();
        let mut ran = 0;
        for command in COMMANDS {
            let verdict = self.world.verdict(&judge, command);
            let Verdict::Allow(Grant::Proof(proved)) = verdict else {
                continue;
            };
            ran += 1;
            let _status = Command::new("bash")
                .args(["--noprofile", "--norc", "-c", proved.script()])
                .current_dir(&self.world.workspace)
                .env_clear()
                .env("PATH", std::env::var_os("PATH").unwrap_or_default())
                .env("HOME", &self.world.home)
                .envs(proved.env().iter().cloned())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            assert!(
                !self.mark.exists(),
                "`{command}` ran {:?}",
                fs::read_to_string(&self.mark)
            );
        }
        ran
    }

    /// Runs the commands with nothing set, so that a trap that cannot spring fails its test.
    fn springs(&self, commands: &[&str]) {
        for command in commands {
            let _status = Command::new("bash")
                .args(["--noprofile", "--norc", "-c", command])
                .current_dir(&self.world.workspace)
                .env("HOME", &self.world.home)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
        }
        assert!(self.mark.exists(), "the trap does not spring by itself");
        fs::remove_file(&self.mark).unwrap();
    }

    pub(super) fn all_ask(&self) {
        let judge = self.judge();
        for command in COMMANDS {
            let verdict = self.world.verdict(&judge, command);
            assert_eq!(word(&verdict), "ask", "{command}: {verdict:?}");
        }
        assert_eq!(word(&self.world.verdict(&judge, "ls")), "auto");
    }
}

#[test]
fn an_honest_repository_asks_nothing() {
    assert_eq!(Trap::new().run_allowed(), COMMANDS.len());
}

#[test]
fn a_file_system_monitor_does_not_run() {
    let trap = Trap::new();
    trap.config("core.fsmonitor", trap.path());
    trap.springs(&["git status"]);
    assert_eq!(trap.run_allowed(), COMMANDS.len());
}

#[test]
fn hooks_do_not_run() {
    let trap = Trap::new();
    let hooks = trap.world.workspace.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in [
        "post-index-change",
        "post-checkout",
        "pre-commit",
        "reference-transaction",
        "fsmonitor-watchman",
    ] {
        fs::copy(&trap.program, hooks.join(hook)).unwrap();
    }
    // A refreshed index is written back unless optional locks are off.
    let touch = "touch -d '2001-01-01' a.txt; sleep 0.01; git status";
    trap.springs(&["git stash -q; git stash pop -q", touch]);
    assert_eq!(trap.run_allowed(), COMMANDS.len());
    trap.config("core.hooksPath", hooks.to_str().unwrap());
    assert_eq!(trap.run_allowed(), COMMANDS.len());
}

#[test]
fn an_external_diff_asks() {
    let trap = Trap::new();
    trap.config("diff.external", trap.path());
    trap.springs(&["git diff"]);
    trap.all_ask();
}

#[test]
fn a_diff_driver_asks() {
    let trap = Trap::new();
    fs::write(
        trap.world.workspace.join(".gitattributes"),
        "*.txt diff=evil\n",
    )
    .unwrap();
    for key in ["diff.evil.textconv", "diff.evil.command"] {
        trap.config(key, trap.path());
        trap.springs(&["git diff"]);
        trap.all_ask();
        trap.world.git(&["config", "--local", "--unset", key]);
    }
    assert_eq!(trap.run_allowed(), COMMANDS.len());
}

#[test]
fn filters_ask() {
    let trap = Trap::new();
    fs::write(
        trap.world.workspace.join(".gitattributes"),
        "*.txt filter=evil\n",
    )
    .unwrap();
    for key in [
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
    ] {
        trap.config(key, trap.path());
        trap.all_ask();
        trap.world.git(&["config", "--local", "--unset", key]);
    }
    trap.config("filter.evil.clean", trap.path());
    trap.springs(&["git diff"]);
}

#[test]
fn a_signature_program_asks() {
    let trap = Trap::new();
    for key in [
        "gpg.program",
        "gpg.ssh.program",
        "gpg.x509.program",
        "gpg.ssh.defaultKeyCommand",
    ] {
        trap.config(key, trap.path());
        trap.all_ask();
        trap.world.git(&["config", "--local", "--unset", key]);
    }
    trap.config("log.showSignature", "true");
    assert_eq!(trap.run_allowed(), COMMANDS.len());
    trap.config("format.pretty", "%G? %h");
    trap.all_ask();
}

#[test]
fn a_pager_or_an_editor_of_the_repository_does_not_run() {
    let trap = Trap::new();
    for key in [
        "core.pager",
        "pager.log",
        "pager.status",
        "pager.diff",
        "core.editor",
        "core.sshCommand",
        "credential.helper",
    ] {
        trap.config(key, &format!("!{}", trap.path()));
    }
    assert_eq!(trap.run_allowed(), COMMANDS.len());
}

#[test]
fn an_alias_that_could_replace_a_command_asks() {
    for key in ["alias.status", "alias.whatchanged", "alias.log.command"] {
        let trap = Trap::new();
        trap.config("alias.st", "status");
        trap.config(key, &format!("!{}", trap.path()));
        trap.all_ask();
    }
    let trap = Trap::new();
    trap.config("alias.st", "status");
    assert_eq!(trap.run_allowed(), COMMANDS.len());
}

#[test]
fn includes_a_moved_work_tree_and_lazy_remotes_ask() {
    for (key, value) in [
        ("include.path", "../evil.config"),
        ("includeIf.gitdir:/.path", "../evil.config"),
        ("core.worktree", "/"),
        ("remote.origin.promisor", "true"),
        ("extensions.partialClone", "origin"),
        ("core.attributesFile", "/etc/passwd"),
        ("core.excludesFile", "/etc/passwd"),
        ("diff.submodule", "log"),
        ("status.submoduleSummary", "true"),
        ("submodule.recurse", "true"),
        ("pretty.evil", "%G?"),
    ] {
        let trap = Trap::new();
        // git itself may stumble over what it is told here, so the file is written by hand.
        let file = trap.world.workspace.join(".git/config");
        let (section, name) = key.rsplit_once('.').unwrap();
        let header = match section.split_once('.') {
            Some((section, sub)) => format!("[{section} \"{sub}\"]"),
            None => format!("[{section}]"),
        };
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("{text}{header}\n\t{name} = {value}\n")).unwrap();
        trap.all_ask();
    }
}

#[test]
fn a_configuration_that_cannot_be_read_asks() {
    let trap = Trap::new();
    let file = trap.world.workspace.join(".git/config");
    fs::write(&file, "[core\n").unwrap();
    trap.all_ask();
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    trap.all_ask();
}

#[test]
fn a_change_of_the_configuration_is_seen() {
    let trap = Trap::new();
    let judge = trap.judge();
    assert_eq!(word(&trap.world.verdict(&judge, "git status")), "auto");
    trap.config("diff.external", trap.path());
    assert_eq!(word(&trap.world.verdict(&judge, "git status")), "ask");
    trap.world
        .git(&["config", "--local", "--unset", "diff.external"]);
    assert_eq!(word(&trap.world.verdict(&judge, "git status")), "auto");
}

#[test]
fn the_configuration_of_a_work_tree_counts() {
    let trap = Trap::new();
    trap.config("extensions.worktreeConfig", "true");
    trap.world
        .git(&["config", "--worktree", "diff.external", trap.path()]);
    trap.springs(&["git diff"]);
    trap.all_ask();
}

#[test]
fn a_repository_within_asks() {
    let trap = Trap::new();
    let inner = trap.world.workspace.join("vendor/lib");
    fs::create_dir_all(&inner).unwrap();
    trap.world.git(&["init", "-q", "vendor/lib"]);
    trap.world
        .git(&["-C", "vendor/lib", "config", "core.fsmonitor", trap.path()]);
    let judge = trap.judge();
    for command in ["cd vendor/lib && git status", "git -C vendor/lib status"] {
        assert_eq!(
            word(&trap.world.verdict(&judge, command)),
            "ask",
            "{command}"
        );
    }
    assert_eq!(word(&verdict_in(&judge, "git status", &inner, &[])), "ask");
    assert_eq!(
        word(&trap.world.verdict(&judge, "cd vendor && git status")),
        "auto"
    );
    assert_eq!(trap.run_allowed(), COMMANDS.len());
}

#[test]
fn a_bare_repository_within_asks() {
    let trap = Trap::new();
    trap.world.git(&["init", "-q", "--bare", "fixture"]);
    trap.world
        .git(&["-C", "fixture", "config", "core.fsmonitor", trap.path()]);
    let judge = trap.judge();
    assert_eq!(
        word(&trap.world.verdict(&judge, "cd fixture && git status")),
        "ask"
    );
    fs::create_dir(trap.world.workspace.join("fixture/deep")).unwrap();
    assert_eq!(
        word(&trap.world.verdict(&judge, "cd fixture/deep && git status")),
        "ask"
    );
}

#[test]
fn a_workspace_that_is_a_bare_repository_asks() {
    let trap = Trap::new();
    fs::write(trap.world.workspace.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::create_dir(trap.world.workspace.join("objects")).unwrap();
    trap.all_ask();
}

#[test]
fn a_submodule_that_wants_to_be_looked_into_asks() {
    let trap = Trap::new();
    let inner = trap.world.workspace.join("sub");
    trap.world.git(&["init", "-q", "sub"]);
    fs::write(inner.join("x"), "x\n").unwrap();
    let as_person = ["-c", "user.name=x", "-c", "user.email=x@example.org"];
    trap.world.git(&["-C", "sub", "add", "x"]);
    trap.world
        .git(&[&["-C", "sub"][..], &as_person, &["commit", "-q", "-m", "x"]].concat());
    trap.world
        .git(&["-C", "sub", "config", "core.fsmonitor", trap.path()]);
    let modules = trap.world.workspace.join(".gitmodules");
    let text = "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n";
    fs::write(&modules, text).unwrap();
    trap.world.git(&[
        "-c",
        "advice.addEmbeddedRepo=false",
        "add",
        "sub",
        ".gitmodules",
    ]);
    trap.springs(&["git status"]);
    assert_eq!(trap.run_allowed(), COMMANDS.len());
    fs::write(&modules, format!("{text}\tignore = none\n")).unwrap();
    trap.springs(&["git -c diff.ignoreSubmodules=dirty status"]);
    trap.all_ask();
    fs::write(&modules, text).unwrap();
    trap.config("submodule.sub.ignore", "none");
    trap.all_ask();
}

#[test]
fn a_repository_has_no_say_in_the_environment() {
    let trap = Trap::new();
    let judge = trap.judge();
    for command in [
        format!("GIT_EXTERNAL_DIFF={} git diff", trap.path()),
        format!(
            "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=diff.external GIT_CONFIG_VALUE_0={} git diff",
            trap.path()
        ),
        format!("GIT_SSH_COMMAND={} git log", trap.path()),
        format!("GIT_PAGER={} git log", trap.path()),
        format!("BASH_ENV={} ls", trap.path()),
        format!("LD_PRELOAD={} ls", trap.path()),
        format!("RIPGREP_CONFIG_PATH={} rg x", trap.path()),
    ] {
        assert_eq!(
            word(&trap.world.verdict(&judge, &command)),
            "ask",
            "{command}"
        );
    }
}
