//! The limits of a kept trial in the repository of the workspace.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use super::trial_scene::{COMMIT, DROPPED, FIXED_TIME, REPOSITORY, Scene, kill, said, wait};

/// Checks that nothing of a script's changes of the repository is kept, and that a file is.
#[track_caller]
fn check_refused(script: &str) {
    let scene = Scene::new(REPOSITORY);
    let before = scene.repository();
    let done = scene.keep(&format!("set -e; {script}; echo kept > file"));
    let told = said(&done);
    assert_eq!(done.status.code(), Some(123), "{script}: {done:?}");
    assert!(
        told.iter().any(|it| it.contains(DROPPED)),
        "{script}: {told:?}"
    );
    assert!(scene.repository() == before, "{script}: {told:?}");
    scene.bash("test $(cat file) = kept");
}

#[test]
fn hooks_configuration_and_the_like_are_never_kept() {
    for more in [
        "git config core.pager x",
        "echo 'exit 1' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        "rm -rf .git/hooks",
        "echo '* filter=x' > .git/info/attributes",
        "echo /etc > .git/objects/info/alternates",
        "ln -s /etc .git/objects/00",
        "ln -sf ../a .git/HEAD",
        "mkdir -p .git/modules/x; echo x > .git/modules/x/config",
        "git update-ref refs/replace/$(git rev-parse HEAD) HEAD^",
        "git update-ref refs/remotes/origin/main HEAD",
        "git symbolic-ref refs/heads/other refs/heads/side",
        "git rev-parse HEAD > .git/shallow",
        "git update-index --assume-unchanged b",
        "git update-index --split-index",
        "rm .git/index",
        "rm -rf .git/objects",
        "mv .git git; rm -rf .git; cp -r git .git; rm -rf git",
    ] {
        check_refused(&format!("{COMMIT} {more}"));
    }
}

#[test]
fn names_that_a_command_chose_do_not_move_the_cursor() {
    for more in [
        r"touch $'x\e[2J'; git add .; git update-index --assume-unchanged $'x\e[2J'",
        r"git update-ref $'refs/x/\xe2\x80\xae' HEAD",
        r"git symbolic-ref $'refs/heads/\xe2\x80\xae' refs/heads/side",
    ] {
        let scene = Scene::new(REPOSITORY);
        let told = said(&scene.keep(&format!("{COMMIT} {more}"))).join("\n");
        assert!(told.contains(DROPPED), "{told:?}");
        let is_hidden = |c: char| matches!(c, '\u{1b}' | '\u{202e}');
        assert!(!told.contains(is_hidden), "{told:?}");
    }
}

#[test]
fn a_signal_ends_a_trial_whose_git_hangs() {
    let scene = Scene::new(REPOSITORY);
    let bin = TempDir::new().unwrap();
    let at = |name: &str| bin.path().join(name);
    let hangs = format!(
        "#!/bin/sh\n: > {asked}\nexec /bin/cat {fifo}\n",
        asked = at("asked").display(),
        fifo = at("fifo").display()
    );
    fs::write(at("git"), hangs).unwrap();
    fs::set_permissions(at("git"), Permissions::from_mode(0o755)).unwrap();
    scene.bash(&format!("mkfifo {}", at("fifo").display()));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", bin.path().display());
    let before = scene.files();
    let mut command = scene.try_command(&[
        "--keep",
        "PATH=${PATH#*:}; echo 2 > a; git commit -qam second",
    ]);
    let child = command
        .env("PATH", path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait("git was not asked", || at("asked").exists());
    let pid = Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    let done = child.wait_with_output().unwrap();
    // Ends that git, if it lives.
    let _opened = rustix::fs::open(at("fifo"), OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty());
    assert_eq!(done.status.code(), Some(130), "{done:?}");
    assert!(scene.files() == before);
}

#[test]
fn an_object_is_what_its_content_is() {
    let plant = "name=$(git rev-parse HEAD:a); other=$(echo other | git hash-object -w --stdin)
        file() { echo .git/objects/${1:0:2}/${1:2}; }; rm -f $(file $name); cp $(file $other) $(file $name)";
    check_refused(&format!("{COMMIT} {plant}"));
    // Nobody needs this one, so nothing of it is kept. No name begins with `ab`.
    let scene = Scene::new(&format!("{FIXED_TIME}{REPOSITORY}"));
    let unused = "mkdir .git/objects/ab; cp .git/objects/??/* .git/objects/ab/";
    let done = scene.keep(&format!("{FIXED_TIME}{COMMIT} {unused}"));
    assert!(done.status.success(), "{done:?}");
    scene
        .bash("test ! -e .git/objects/ab && git fsck 2> /dev/null && git show main:a | grep -qx 2");
}

#[test]
fn a_missing_object_is_noticed() {
    check_refused(&format!(
        "{COMMIT} name=$(git rev-parse HEAD:a); rm -f .git/objects/${{name:0:2}}/${{name:2}}"
    ));
    check_refused(
        "git update-ref refs/heads/side $(printf 1234%.0s 1 2 3 4 5 6 7 8 9 10) || echo $(printf 1234%.0s 1 2 3 4 5 6 7 8 9 10) > .git/refs/heads/side",
    );
}

/// Writes an index with a file of one path, which git would not do.
const WRITE_INDEX: &str = r#"cat > write.py <<'P'
import hashlib, subprocess, sys
path, mode = sys.argv[1].encode(), int(sys.argv[2], 8)
blob = bytes.fromhex(subprocess.run(["git", "rev-parse", "HEAD:a"], capture_output=True, text=True).stdout.strip())
entry = bytes(24) + mode.to_bytes(4, "big") + bytes(12) + blob + len(path).to_bytes(2, "big") + path
entry += bytes(8 - len(entry) % 8)
index = b"DIRC" + (2).to_bytes(4, "big") + (1).to_bytes(4, "big") + entry
open(".git/index", "wb").write(index + hashlib.sha1(index).digest())
P
"#;

#[test]
fn an_index_has_only_paths_of_the_workspace() {
    for (path, mode) in [
        (".git/hooks/x", "100644"),
        ("sub/.GIT/config", "100644"),
        ("../x", "100644"),
        ("/x", "100644"),
        ("a//b", "100644"),
        (".git./config", "100644"),
        ("x", "100600"),
        ("x", "40000"),
    ] {
        check_refused(&format!(
            "{WRITE_INDEX}python3 write.py '{path}' {mode}; rm write.py"
        ));
    }
    // Such an index alone is no fault.
    let scene = Scene::new(REPOSITORY);
    let done = scene.keep(&format!(
        "{WRITE_INDEX}python3 write.py x 100644; rm write.py"
    ));
    assert!(done.status.success(), "{done:?}");
    scene.bash("test $(git ls-files) = x");
}

#[test]
fn a_ref_has_a_name_that_git_accepts() {
    let scene = Scene::new(REPOSITORY);
    let name = "refs/heads/../../../x";
    scene.keep(&format!(
        "{COMMIT} git pack-refs --all; echo $(git rev-parse HEAD) {name} >> .git/packed-refs"
    ));
    scene.bash("test ! -e x -a ! -e ../x; git for-each-ref 2>&1 | grep -c refs/ | grep -qx 2");
}

#[test]
fn no_program_of_the_repository_runs_when_commits_are_kept() {
    let scene = Scene::new(&format!(
        "{REPOSITORY}
        printf '#!/bin/sh\\necho x >> %s/ran 2> /dev/null; exit 0\\n' \"$HOME\" > .git/program; chmod +x .git/program
        for hook in reference-transaction post-index-change post-commit; do cp .git/program .git/hooks/$hook; done
        touch -d 2100-01-01 b; git add b
        git config core.fsmonitor $PWD/.git/program
        for event in reference-transaction post-index-change; do
            git config hook.a.b.event $event; git config hook.a.b.command $PWD/.git/program
        done
        git config filter.x.clean $PWD/.git/program; git config filter.x.required true
        git config diff.x.command $PWD/.git/program; git config diff.external $PWD/.git/program
        echo '* filter=x diff=x' > .gitattributes; echo 2 > a; rm -f ~/ran"
    ));
    let done = scene.keep(
        "git commit -q --allow-empty -m second; git checkout -q -b new; git update-index --add --cacheinfo 100644,$(git rev-parse HEAD:a),new",
    );
    assert_eq!(said(&done), ["[kept]"], "{done:?}");
    scene.bash("test ! -e ~/ran; test $(cat .git/HEAD | cut -c 17-) = new");
    scene.bash("git -c core.fsmonitor=false ls-files | grep -qx new; git log -1 --format=%s new | grep -q second");
}

#[test]
fn a_tracked_file_is_never_ignored() {
    let scene = Scene::new(&format!(
        "{REPOSITORY}; mkdir -p out/sub; echo 1 | tee x.log > out/sub/kept; echo junk > out/junk
        printf 'out/\\n*.log\\n' > .gitignore; git add -f .gitignore x.log out/sub; git commit -qm ignored"
    ));
    let change = "echo 2 | tee x.log new.log other.log out/other > out/sub/kept; git add -f new.log; git commit -qam second";
    let done = scene.keep(change);
    assert!(done.status.success(), "{done:?}");
    scene.bash("git log --format=%s | grep -qx second; test -z \"$(git status -s)\"");
    scene.bash("for file in x.log new.log out/sub/kept; do grep -qx 2 $file; done; test ! -e other.log -a ! -e out/other");
    // Of a directory that is removed, what git does not track stays.
    let done = scene.keep("git rm -q '*.log'; rm -r out; git commit -qam third");
    assert!(done.status.success(), "{done:?}");
    scene.bash("test -z \"$(git status -s)\"; test ! -e x.log -a ! -e new.log -a ! -e out/sub -a -e out/junk");
}

/// Returns what a person sees of the repository and of a file.
fn seen(scene: &Scene) -> String {
    let script = "cat .git/HEAD a; git for-each-ref; git ls-files -s; git stash list";
    let done = scene.command("bash").args(["-c", script]).output().unwrap();
    String::from_utf8(done.stdout).unwrap()
}

/// Returns a script that makes a repository, and one that changes all in it that a trial keeps. Their commits have no time.
fn changes_of_all_kinds() -> (String, String) {
    let date =
        "export GIT_COMMITTER_DATE=2001-01-01T00:00:00Z GIT_AUTHOR_DATE=2001-01-01T00:00:00Z";
    let script = "echo 3 > b; git stash -q; git switch -q -c new; echo 2 > a; git commit -qam second; echo 1 > c; git add c;";
    (format!("{date}\n{REPOSITORY}"), format!("{date}\n{script}"))
}

/// Returns what a person sees before and after a script is kept.
fn states(repository: &str, script: &str) -> (String, String) {
    let scene = Scene::new(repository);
    let old = seen(&scene);
    assert!(scene.keep(script).status.success());
    let new = seen(&scene);
    assert_ne!(old, new);
    (old, new)
}

/// Starts co until it has finished what was killed. Returns what it says.
fn finish(scene: &Scene) -> Vec<String> {
    let keeps = scene.state().join("checkpoints/keeps");
    let mut told = Vec::new();
    wait("the journal stays", || {
        told.extend(said(&scene.exec(&["true"])));
        keeps.read_dir().map_or(true, |mut it| it.next().is_none())
    });
    told
}

/// Checks that git accepts the repository, and that co left nothing in it.
fn check_whole(scene: &Scene) {
    scene.bash("git fsck --no-dangling && test ! -e .git/index.lock && ! ls -A .git | grep co-");
}

/// Returns whether a process works in the workspace.
fn is_used(scene: &Scene) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut dirs = processes.map(|it| std::fs::read_link(it.path().join("cwd")));
    dirs.any(|dir| dir.is_ok_and(|dir| dir == scene.workspace))
}

#[test]
fn a_keep_that_is_killed_between_files_and_refs_is_finished() {
    let (repository, script) = changes_of_all_kinds();
    let (old, new) = states(&repository, &script);
    let scene = Scene::new(&format!(
        "{repository}; git config core.filesRefLockTimeout 5000"
    ));
    // Git waits for this lock after all files are written.
    let mut child = scene.start_while(&script, "touch .git/refs/heads/new.lock");
    let refs = |text: &str| {
        text.lines()
            .filter(|it| it.contains("refs/"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    scene.bash("echo go > flag");
    wait("no file is kept", || scene.workspace.join("made").exists());
    kill(&mut child);
    wait("git waits", || !is_used(&scene));
    assert_eq!(refs(&seen(&scene)), refs(&old));
    // As if git had been killed too.
    scene.bash("test -e c -a -e .git/index.lock; touch .git/refs/heads/new.lock");
    let told = finish(&scene);
    assert!(
        told.iter()
            .any(|it| it.contains("and .git, is changed now")),
        "{told:?}"
    );
    assert_eq!(seen(&scene), new);
    check_whole(&scene);
}

#[test]
fn a_keep_that_is_killed_leaves_a_whole_repository() {
    let (repository, script) = changes_of_all_kinds();
    let (old, new) = states(&repository, &script);
    let moments = [
        ".git/index.lock",
        ".git/refs/heads/new",
        ".git/refs/stash",
        ".git/HEAD.lock",
        ".git/logs/refs/stash",
        "c",
    ];
    for moment in moments {
        let scene = Scene::new(&repository);
        let mut child = scene.start(&["--keep", &script]);
        let place = scene.workspace.join(moment);
        wait(moment, || {
            place.exists() || child.try_wait().unwrap().is_some()
        });
        kill(&mut child);
        let told = finish(&scene);
        let found = seen(&scene);
        assert!(found == old || found == new, "{moment}: {told:?}: {found}");
        check_whole(&scene);
    }
}

#[test]
fn each_ref_that_moves_is_named() {
    let scene = Scene::new(&format!(
        "{REPOSITORY}; echo 2 > a; git commit -qam second; git checkout -q side; git branch old
        for name in main side; do git rev-parse --short=7 $name; done > names"
    ));
    for (script, lines) in [
        (
            "git update-ref refs/heads/old main",
            &["branch old: 1 commit of other refs more, at MAIN"][..],
        ),
        (
            "git merge -q --ff-only main",
            &["branch side: 1 commit of other refs more, at MAIN"],
        ),
        (
            "git branch -f main old",
            &["branch main: 1 commit fewer, at FIRST"],
        ),
        (
            "git checkout -q --detach; git commit -q --allow-empty -m new; git tag new",
            &[
                "tag new: new, at NEW",
                "commit NEW: new, 0 files, on tag new",
                "HEAD: detached at NEW",
            ],
        ),
        (
            "git commit -q --allow-empty -m new; git branch -f old; git tag new",
            &[
                "commit NEW: new, 0 files, on branch old",
                "branch side: 1 commit of other refs more, at NEW",
                "tag new: new, at NEW",
            ],
        ),
    ] {
        let script = format!("{script}; cat names; git rev-parse --short=7 HEAD");
        let done = scene.exec(&["--drop", &script]);
        let told = String::from_utf8(done.stdout).unwrap();
        let (names, told): (Vec<_>, Vec<_>) = told.lines().partition(|it| !it.starts_with("git: "));
        let lines = lines.iter().map(|line| {
            let line = line.replace("MAIN", names[0]).replace("FIRST", names[1]);
            format!("git: {}", line.replace("NEW", names[2]))
        });
        let told: Vec<_> = told
            .into_iter()
            .filter(|it| !it.contains("index: "))
            .collect();
        assert_eq!(told, lines.collect::<Vec<_>>(), "{script}");
    }
}

#[test]
fn a_workspace_may_have_a_name_that_lists_of_paths_divide() {
    let scene = Scene::new(&format!("mkdir 'a:\\\"b'; cd 'a:\\\"b'; {REPOSITORY}"));
    let done = scene.exec(&["--keep", "--cwd", "a:\\\"b", COMMIT]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    scene.bash("cd a:*; git log -1 --format=%s | grep -qx second");
}
