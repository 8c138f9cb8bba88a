//! `git ls-files | xargs cat` reads what git tracks: judged file by file, whatever else lies about.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use co_policy::{Grant, PolicySettings, Verdict};

use super::world::{World, word};

const READS: &str = "git ls-files | xargs cat";

/// What is said of reading all tracked files, after something was done to the workspace.
fn after(act: impl FnOnce(&World)) -> Verdict {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    assert_eq!(word(&world.verdict(&judge, READS)), "auto");
    act(&world);
    world.verdict(&judge, READS)
}

#[test]
fn where_git_lists_nothing_that_is_the_reason() {
    let verdict = after(|world| fs::remove_file(world.workspace.join(".git/index")).unwrap());
    let Verdict::Ask(ask) = &verdict else {
        panic!("{verdict:?}");
    };
    assert_eq!(
        ask.reasons[0].text,
        "the files that git tracks are too many, or git does not list them"
    );
}

#[test]
fn what_is_not_tracked_does_not_count() {
    let verdict = after(|world| {
        fs::write(world.workspace.join("new.pem"), "x\n").unwrap();
        fs::write(world.workspace.join("a b"), "x\n").unwrap();
        symlink("/etc/passwd", world.workspace.join("link")).unwrap();
        fs::remove_file(world.workspace.join("b.txt")).unwrap();
    });
    assert_eq!(word(&verdict), "auto", "{verdict:?}");
}

#[test]
fn a_tracked_file_that_a_reader_must_not_be_handed_asks() {
    type Act = fn(&World);
    let acts: [(&str, Act); 7] = [
        ("a secret", |world| {
            fs::write(world.workspace.join("prod.pem"), "x\n").unwrap();
            world.git(&["add", "prod.pem"]);
        }),
        ("a name with a blank", |world| {
            fs::write(world.workspace.join("a b"), "x\n").unwrap();
            world.git(&["add", "a b"]);
        }),
        ("a name that is an option", |world| {
            fs::write(world.workspace.join("src/-n"), "x\n").unwrap();
            world.git(&["add", "src/-n"]);
        }),
        ("a link that leaves", |world| {
            symlink("/etc/passwd", world.workspace.join("x")).unwrap();
            world.git(&["add", "x"]);
        }),
        ("a file that became a link", |world| {
            fs::remove_file(world.workspace.join("a.txt")).unwrap();
            symlink(
                world.home.join(".ssh/id_rsa"),
                world.workspace.join("a.txt"),
            )
            .unwrap();
        }),
        ("a directory that became a link", |world| {
            fs::rename(world.workspace.join("src"), world.home.join("src")).unwrap();
            symlink(world.home.join("src"), world.workspace.join("src")).unwrap();
        }),
        ("a file that became a FIFO", |world| {
            let path = world.workspace.join("a.txt");
            fs::remove_file(&path).unwrap();
            nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }),
    ];
    for (name, act) in acts {
        let verdict = after(act);
        assert_eq!(word(&verdict), "ask", "{name}: {verdict:?}");
    }
}

#[test]
fn an_ending_narrows_what_is_read() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    fs::write(world.workspace.join("prod.pem"), "x\n").unwrap();
    world.git(&["add", "prod.pem"]);
    for (command, expected) in [
        ("git ls-files '*.rs' | xargs cat", "auto"),
        ("git ls-files '*.pem' | xargs cat", "ask"),
        ("git ls-files 'p*' | xargs cat", "ask"),
        ("git ls-files | xargs grep -n x", "auto"),
        ("git ls-files | xargs wc -l", "auto"),
    ] {
        assert_eq!(word(&world.verdict(&judge, command)), expected, "{command}");
    }
}

#[test]
fn a_workspace_that_chooses_its_tools_is_not_asked_for_their_version() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    let said = |command: &str| word(&world.verdict(&judge, command));
    fs::create_dir_all(world.workspace.join(".config/mise")).unwrap();
    for name in [
        "rust-toolchain.toml",
        ".tool-versions",
        ".python-version",
        "mise.local.toml",
        ".mise.local.toml",
        ".config/mise/config.toml",
    ] {
        let file = world.workspace.join(name);
        fs::write(&file, "x\n").unwrap();
        assert_eq!(said("cargo --version"), "ask", "{name}");
        assert_eq!(said("cd src && python3 --version"), "ask", "{name}");
        assert_eq!(said("rg --version"), "auto", "{name}");
        fs::remove_file(&file).unwrap();
    }
    assert_eq!(said("cargo --version"), "auto");
}

#[test]
fn a_version_is_told_by_what_only_the_person_can_write() {
    let world = World::new();
    for name in ["cargo", "node"] {
        world.program(name, "#!/bin/sh\n");
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(world.bin.join(name), open).unwrap();
    }
    let (judge, _) = world.judge(PolicySettings::default());
    for (command, expected) in [
        ("cargo --version", "ask"),
        ("node --version", "ask"),
        // `node` runs it.
        ("npm --version", "ask"),
        ("make --version", "auto"),
    ] {
        assert_eq!(word(&world.verdict(&judge, command)), expected, "{command}");
    }
}

#[test]
fn go_does_not_fetch_another_go() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    let Verdict::Allow(Grant::Proof(proved)) = world.verdict(&judge, "go version") else {
        panic!("`go version` only looks");
    };
    let go = ("GOTOOLCHAIN".to_owned(), "local".to_owned());
    assert!(proved.env().contains(&go), "{proved:?}");
}

#[test]
fn a_directory_that_may_not_be_entered_is_not_counted_on() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    let command = "cd src; cat ../a.txt";
    assert_eq!(word(&world.verdict(&judge, command)), "auto");
    let src = world.workspace.join("src");
    fs::set_permissions(&src, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(word(&world.verdict(&judge, command)), "ask");
    fs::set_permissions(&src, fs::Permissions::from_mode(0o755)).unwrap();
}
