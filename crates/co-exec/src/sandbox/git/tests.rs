use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::test_files;

/// Makes a directory with these files; returns it and its real path.
fn lay<N: AsRef<str>>(files: &[N]) -> (tempfile::TempDir, PathBuf) {
    let top = tempfile::tempdir().unwrap();
    let real = top.path().canonicalize().unwrap();
    for name in files {
        test_files::write(&real, name.as_ref(), "");
    }
    (top, real)
}

#[test]
fn a_git_file_that_leads_elsewhere_opens_nothing() {
    let (_top, top) = lay(&["private/objects/x", "private/config"]);
    fs::create_dir(top.join("work")).unwrap();
    fs::write(top.join("work/.git"), "gitdir: ../private\n").unwrap();
    let layout = Layout::of(&top.join("work"));
    assert_eq!(layout.outside(), None);
    assert_eq!(layout.limits().held, [top.join("work/.git")]);
}

#[test]
fn a_git_file_that_never_ends_is_not_waited_for() {
    let (_top, top) = lay::<&str>(&[]);
    nix::unistd::mkfifo(&top.join(".git"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(Layout::of(&top).outside().is_none()));
    let told = told.recv_timeout(std::time::Duration::from_secs(20));
    assert_eq!(told, Ok(true));
}

#[test]
fn modules_are_held_at_every_depth_of_their_names() {
    let modules = ["modules/one", "modules/a/two", "modules/one/modules/three"];
    let files = ["", "objects/x", "refs/x"];
    let mut all: Vec<String> = files
        .iter()
        .map(|name| format!(".git/{name}/HEAD"))
        .collect();
    all.extend(modules.iter().map(|name| format!(".git/{name}/HEAD")));
    let (_top, top) = lay(&all);
    let (limits, git) = (Layout::of(&top).limits(), top.join(".git"));
    assert!(limits.obeyed.contains(&git.join("modules")));
    for name in modules {
        assert!(
            limits.obeyed.contains(&git.join(name).join("hooks")),
            "{name}"
        );
        assert!(limits.writable.contains(&git.join(name)), "{name}");
    }
    assert!(!limits.writable.contains(&git.join("modules/a")));
}

#[test]
fn of_very_many_all_stay_as_they_are() {
    let own = [".git/HEAD", ".git/objects/x", ".git/refs/x"].map(str::to_owned);
    let modules = (0..MAX_SEPARATE_DIRECTORIES).map(|n| format!(".git/modules/m{n}/HEAD"));
    let trees = (0..MAX_SEPARATE_DIRECTORIES).map(|n| format!(".git/worktrees/t{n}/HEAD"));
    let files: Vec<String> = own.into_iter().chain(modules).chain(trees).collect();
    let (_top, top) = lay(&files);
    let (limits, git) = (Layout::of(&top).limits(), top.join(".git"));
    assert_eq!(limits.writable.len(), MAX_SEPARATE_DIRECTORIES);
    assert!(limits.allowed.contains(&git.join("worktrees")));
    for name in ["modules/more/HEAD", "worktrees/more/HEAD"] {
        test_files::write(&git, name, "");
    }
    let limits = Layout::of(&top).limits();
    assert!(limits.writable.is_empty());
    assert!(limits.obeyed.contains(&git.join("modules")));
    assert!(limits.held.contains(&git.join("worktrees")));
    assert!(!limits.allowed.contains(&git.join("worktrees")));
}

#[test]
fn what_no_command_of_git_changes_is_held() {
    let (_top, top) = lay(&[
        ".git/HEAD",
        ".git/objects/x",
        ".git/refs/x",
        ".git/index.lock",
        ".git/MERGE_RR",
        ".git/description",
        ".git/worktrees/tree/HEAD",
        ".git/worktrees/tree/gitdir",
        ".git/worktrees/tree/locked",
    ]);
    let (mut limits, git) = (Layout::of(&top).limits(), top.join(".git"));
    let paths = |names: &[&str]| names.iter().map(|name| git.join(name)).collect::<Vec<_>>();
    limits.held.sort();
    limits.allowed.sort();
    let held = [
        "description",
        "worktrees/tree/gitdir",
        "worktrees/tree/locked",
    ];
    assert_eq!(limits.held, paths(&held));
    let allowed = [
        "HEAD",
        "MERGE_RR",
        "index.lock",
        "objects",
        "refs",
        "worktrees",
        "worktrees/tree/HEAD",
    ];
    assert_eq!(limits.allowed, paths(&allowed));
}

#[test]
fn configuration_names_further_files() {
    let (_top, home) = lay(&["more", "ignored"]);
    let text = "[include]\n\tpath = ~/more\n[core]\n\texcludesFile = \"ignored\"\n";
    fs::write(home.join(".gitconfig"), text).unwrap();
    assert_eq!(
        configuration(&home),
        [home.join("more"), home.join("ignored")]
    );
}

#[test]
fn configuration_that_is_no_regular_file_is_refused_at_once() {
    let include = |name: &str| format!("[include]\n\tpath = {name}\n");
    for (files, fifo) in [
        (vec![], "config"),
        (vec![("config", include("pipe"))], "pipe"),
        (
            vec![("config", include("more")), ("more", include("pipe"))],
            "pipe",
        ),
        (
            vec![(
                "config",
                "[includeIf \"gitdir:/nowhere\"]\n\tpath = pipe\n".to_owned(),
            )],
            "pipe",
        ),
    ] {
        let (_top, top) = lay(&[".git/HEAD", ".git/objects/x", ".git/refs/x"]);
        let dot = top.join(".git");
        for (name, text) in &files {
            fs::write(dot.join(name), text).unwrap();
        }
        nix::unistd::mkfifo(&dot.join(fifo), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let env = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
        let refused = ConfiguredPaths::ask(&GitQuery {
            workspace: &top,
            home: &top,
            env: &env,
            trusted: true,
        });
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains(fifo) && refused.contains("is not a regular file"),
            "{refused}"
        );
    }
}

/// Returns the paths that the configuration of a new repository names, and how often git was started for them.
fn ask(config: &str) -> (ConfiguredPaths, usize) {
    let (_top, top) = lay(&["work/.git/HEAD", "work/.git/objects/x", "work/.git/refs/x"]);
    fs::write(top.join("work/.git/config"), config).unwrap();
    fs::write(top.join("work/.git/more"), "[Core]\n\thooksPath = more\n").unwrap();
    let path = std::env::var("PATH").unwrap();
    let (git, starts) = (top.join("bin/git"), top.join("starts"));
    let script = format!(
        "#!/bin/sh\necho >> '{}'\nPATH='{path}' exec git \"$@\"\n",
        starts.display()
    );
    test_files::write(&top, "bin/git", &script);
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    let asked = ConfiguredPaths::ask(&GitQuery {
        workspace: &top.join("work"),
        home: &top,
        env: &[("PATH".into(), top.join("bin").into())],
        trusted: true,
    });
    let starts = fs::read_to_string(starts).unwrap_or_default();
    (asked.unwrap(), starts.lines().count())
}

#[test]
fn git_starts_once_for_a_configuration_that_names_no_paths() {
    let plain = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = x\n";
    assert_eq!(ask(plain), (ConfiguredPaths::default(), 1));
}

#[test]
fn each_spelling_of_a_key_is_found() {
    for config in [
        "[core]\nhooksPath = more",
        "[CORE] HOOKSPATH=more",
        "[INCLUDE]\npath = more",
        "[includeIf \"gitdir:/nowhere\"]\npath = more",
    ] {
        let (found, starts) = ask(config);
        assert_eq!(found.hooks.len(), 1, "{config}: {found:?}");
        assert!(starts > 1, "{config}");
    }
}
