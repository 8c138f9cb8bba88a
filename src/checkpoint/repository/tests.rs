use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use super::*;
use crate::checkpoint::log::{By, Record};
use crate::checkpoint::tests::{DEADLINE, Scene, finish};
use crate::checkpoint::{InterruptedKeep, Undo};
use crate::git::{HeadChange, Index, RefChange, StashChange};

/// Makes a repository with a stash.
const REPOSITORY: &str = "git init -q -b main; git config user.name a; git config user.email a@b
echo 1 > a; echo 1 > b; echo 1 > c; git add .; git commit -qm first; git branch side; git tag old
echo 2 > a; git stash -q; echo 2 > b; git stash -q";

/// Changes every part of a repository that can be kept of a trial.
const CHANGE: &str = "git stash drop -q; echo 3 > b; git stash -q; echo 4 > c; git add c; git tag -d old > /dev/null
git branch -D side 2> /dev/null >&2; git commit -qm second; git switch -q -c new; git commit -q --allow-empty -m third
echo 5 > d; git add d";

impl Scene {
    fn with_repository() -> Self {
        let scene = Self::new();
        scene.bash(REPOSITORY);
        scene
    }

    fn bash(&self, script: &str) -> String {
        let done = Command::new("bash")
            .args(["-ec", script])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .current_dir(self.at(""))
            .output()
            .unwrap();
        assert!(done.status.success(), "{script}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// Returns what a person sees of the repository.
    fn seen(&self) -> String {
        self.bash("cat .git/HEAD; git for-each-ref; git ls-files -s; git stash list")
    }

    fn open(&self) -> Repository {
        Repository::open(&git(), self.workspace.root()).unwrap()
    }

    /// Runs a script, and returns its changes of the repository as those of a trial that was kept.
    fn kept(&self, script: &str) -> Record {
        let state = || {
            let repository = self.open();
            let index = repository.index_bytes().unwrap();
            let index = Index::parse(&index, 20).unwrap();
            let (head, stash) = (repository.head().unwrap(), repository.stash().unwrap());
            (repository.refs().unwrap(), head, stash, index)
        };
        let before = state();
        self.bash(script);
        let after = state();
        self.bash("git pack-objects -q --all --indexed-objects --stdout < /dev/null > ../pack");
        let pack = fs::read(self.top.join("pack")).unwrap();
        let stash = StashChange {
            before: before.2,
            after: after.2,
        };
        let change = RepositoryChange {
            refs: RefChange::between(&before.0, &after.0).unwrap(),
            head: Some(HeadChange {
                before: before.1,
                after: after.1,
            }),
            stash: Some(stash).filter(|it| it.before != it.after),
            index: before.3.changes(&after.3).unwrap(),
        };
        self.record(Some(KeptRepository {
            git: git(),
            change,
            packs: vec![self.workspace.store.put(&pack).unwrap()],
        }))
    }

    fn record(&self, repository: Option<KeptRepository>) -> Record {
        Record {
            planned: false,
            turn: 0,
            by: By::Undo,
            workspace: self.workspace.root().to_owned(),
            changes: Vec::new(),
            repository,
            unclear: Vec::new(),
            unknown: None,
        }
    }

    fn plan(&self, records: &[Record]) -> Result<Option<RepositoryChanges>, String> {
        let turn = TurnChanges {
            turn: 0,
            last: 0,
            records: records.to_vec(),
        };
        taking_back(&turn, &self.workspace.store)
    }

    /// Takes the changes of records back. Returns the record of that.
    fn taken_back(&self, records: &[Record]) -> Record {
        let planned = self.plan(records).unwrap().unwrap().kept;
        let (undo, root) = (Undo::default(), self.workspace.root());
        let done = self
            .checkpoints
            .make(undo, Some(planned.clone()), root, By::Undo);
        let done = done.unwrap();
        assert_eq!(done.all_failed().next(), None);
        self.record(done.made_of(Some(planned)))
    }
}

fn git() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let mut all = std::env::split_paths(&path).map(|it| it.join("git"));
    all.find(|it| it.exists()).unwrap()
}

#[test]
fn all_that_was_kept_is_taken_back_and_brought_back() {
    let scene = Scene::with_repository();
    let before = scene.seen();
    // The second change builds on the first.
    let records = [
        scene.kept(CHANGE),
        scene.kept("git commit -qm fourth; git tag -d old 2> /dev/null || git tag old"),
    ];
    let after = scene.seen();
    let hook = scene.at(".git/hooks/reference-transaction");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\n: > ../ran\nexit 1\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let lines = scene.plan(&records).unwrap().unwrap().lines;
    let starts = [
        "branch main: 1 commit fewer, at ",
        "branch new: removed, was ",
        "branch side: new, at ",
        "tag old: ",
        "HEAD: on branch main",
        "stash: 1 more: WIP on main: ",
        "stash: 1 fewer",
    ];
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{lines:?}");
    }
    assert_eq!(lines.len(), starts.len(), "{lines:?}");
    assert_eq!(scene.seen(), after, "a plan changes nothing");
    let undone = scene.taken_back(&records);
    assert_eq!(scene.seen(), before);
    assert_eq!(scene.plan(&records), Ok(None), "nothing is left");
    // Removes the commits to which nothing refers.
    scene.bash("git reflog expire --expire=now --expire-unreachable=now $(git for-each-ref --format='%(refname)' refs/heads) HEAD; git -c gc.reflogExpire=never prune --expire=now");
    let redone = scene.taken_back(&[undone]);
    assert_eq!(scene.seen(), after);
    scene.taken_back(&[redone]);
    assert_eq!(scene.seen(), before);
    assert!(!scene.top.join("ran").exists(), "a hook ran");
    scene.bash("git fsck --no-dangling 2>&1");
}

#[test]
fn a_change_has_begun_when_any_part_of_it_is_made() {
    for script in [
        "echo 4 > c; git add c",
        "git tag new",
        "git switch -q -c new",
        "git stash drop -q",
    ] {
        let scene = Scene::with_repository();
        let kept = scene.kept(script).repository.unwrap();
        let made = scene.open();
        assert_eq!(made.has_begun(&kept.change), Ok(true), "{script}");
        assert_eq!(
            made.has_begun(&kept.inverse().change),
            Ok(false),
            "{script}"
        );
    }
}

#[test]
fn what_the_person_changed_since_then_stays() {
    for (person, why) in [
        (
            "git commit -q --allow-empty -m mine",
            "branch new has changed meanwhile",
        ),
        (
            "git branch -f main new",
            "branch main has changed meanwhile",
        ),
        (
            "git switch -q -c other",
            "HEAD has changed meanwhile: it was on branch new, and is on branch other",
        ),
        (
            "git checkout -q --detach",
            "HEAD has changed meanwhile: it was on branch new, and is detached at ",
        ),
        (
            "echo 6 > d; git add d",
            "d has changed in the index meanwhile",
        ),
        ("git stash drop -q", "the stash has changed meanwhile"),
        ("git tag old", "tag old has changed meanwhile"),
        (
            "git worktree add -q ../other main",
            "another working tree has branch main",
        ),
    ] {
        let scene = Scene::with_repository();
        let record = scene.kept(CHANGE);
        let planned = scene.plan(std::slice::from_ref(&record)).unwrap().unwrap();
        scene.bash(person);
        let mine = scene.seen();
        let refused = scene.plan(&[record]).unwrap_err();
        assert!(refused.starts_with(why), "{person}: {refused}");
        // The same holds if the person did it after the question.
        let (undo, root) = (Undo::default(), scene.workspace.root());
        let done = scene
            .checkpoints
            .make(undo, Some(planned.kept), root, By::Undo)
            .unwrap();
        let failed: Vec<_> = done.all_failed().collect();
        assert_eq!(failed, [&(PathBuf::from(".git"), refused)], "{person}");
        assert_eq!(scene.seen(), mine, "{person}");
        scene.bash("test ! -e .git/index.lock");
    }
    // Changes in other places are no reason to refuse.
    let scene = Scene::with_repository();
    let record = scene.kept(CHANGE);
    scene.bash("git tag mine; git branch other; echo 6 > e; git add e");
    scene.taken_back(&[record]);
    scene.bash("git rev-parse -q --verify mine^{commit}; test $(git log -1 --format=%s other) = third; git ls-files | grep -qx e; grep -q main .git/HEAD");
}

/// Takes the changes of the scene back.
#[test]
fn child_that_is_killed() {
    let Some(scene) = Scene::of_parent() else {
        return;
    };
    scene.taken_back(&scene.checkpoints.records("chat"));
}

#[test]
fn an_undo_that_is_killed_leaves_a_whole_repository() {
    let mut finished = 0;
    for moment in [
        ".git/index.lock",
        ".git/refs/heads/side",
        ".git/refs/tags/old",
        ".git/HEAD.lock",
        ".git/ORIG_HEAD",
    ] {
        let scene = Scene::with_repository();
        let before = scene.seen();
        let record = scene.kept(CHANGE);
        let after = scene.seen();
        scene.checkpoints.append("chat", &record).unwrap();
        let mut child = scene.spawn("checkpoint::repository::tests::child_that_is_killed");
        let began = Instant::now();
        while !scene.at(moment).exists() && child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < DEADLINE, "{moment}");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let found = finish(&scene.top);
        let now = scene.seen();
        match &found[..] {
            [] => assert!(now == before || now == after, "{moment}: {now}"),
            [it @ InterruptedKeep { dropped: true, .. }] => {
                assert_eq!(now, after, "{moment}");
                assert!(
                    it.to_string()
                        .starts_with("co was killed before it took changes back in ")
                );
            }
            [it] => {
                assert_eq!(now, before, "{moment}: {it}");
                assert!(
                    it.to_string()
                        .ends_with(": the rest, 0 files and .git, is changed now"),
                    "{it}"
                );
                finished += 1;
            }
            more => panic!("{more:?}"),
        }
        scene.bash(
            "git fsck --no-dangling 2>&1; test ! -e .git/index.lock; ! ls -A .git | grep co-",
        );
    }
    assert!(finished > 0, "no kill came between two changes");
}
