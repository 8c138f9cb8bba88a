//! Git at the workspace level works, and a command cannot change or make the files that git runs or reads as
//! configuration.

use std::fs;
use std::path::Path;

use super::machine::Machine;
use super::scene::stdout;

/// Commands that would change the programs that git runs later, in a repository without any of the files yet.
const DEEDS: &[&str] = &[
    "echo ../evil > .git/commondir",
    "rm -f .git/commondir; echo ../evil > .git/commondir",
    "echo x > .git/config.worktree",
    "echo x > new; mv new .git/config.worktree",
    "echo x >> .git/config",
    "git config core.fsmonitor ./evil",
    "mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
    "mkdir hooks && mv -T hooks .git/hooks",
    "rmdir .git/hooks; mkdir .git/hooks && touch .git/hooks/x",
    "mkdir -p .git/info && echo x > .git/info/attributes",
    "mkdir -p .git/modules/evil/hooks",
    "mkdir -p .git/remotes && echo x > .git/remotes/origin",
    "mkdir -p .git/branches && echo x > .git/branches/origin",
    "echo ../evil > .git/worktrees/tree/commondir",
    "echo x > .git/worktrees/tree/config.worktree",
    "echo x > .git/worktrees/tree/gitdir",
    "mv .git/worktrees/tree .git/worktrees/tree2",
    "mv .git/worktrees .git/worktrees2",
    "mkdir -p .git/worktrees/tree/modules/evil",
    "echo x > .git/description",
    "mv .git .git2",
    "mv .git .git2 && git init",
];

/// The same commands for the directory of a submodule.
const IN_MODULES: &[&str] = &[
    "echo ../evil > .git/modules/deep/sub/commondir",
    "echo x >> .git/modules/deep/sub/config",
    "mkdir -p .git/modules/deep/sub/hooks && echo x > .git/modules/deep/sub/hooks/x",
    "mkdir -p .git/modules/deep/sub/modules/evil",
    "mkdir -p .git/modules/deep/evil/hooks",
    "mv .git/modules/deep .git/modules/deep2",
    "mv .git/modules/deep/sub .git/modules/deep/sub2",
];

/// A repository with a work tree `tree`, without the optional names.
fn bare_of_all(machine: &Machine) -> std::path::PathBuf {
    let ws = machine.repository("ws");
    machine.bash(
        &ws,
        "git worktree add -q ../tree; rm -rf .git/hooks .git/info .git/branches; git status -s",
    );
    ws
}

fn names(dir: &Path) -> Vec<String> {
    let entries = dir.read_dir().unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn what_git_obeys_cannot_be_changed_or_made() {
    for (number, machine) in Machine::all().iter().enumerate() {
        let ws = bare_of_all(machine);
        let before = [".git", ".git/worktrees/tree"].map(|dir| names(&ws.join(dir)));
        if number == 0 {
            machine.each_works_free(&ws, DEEDS);
        }
        machine.each_is_held(&ws, DEEDS);
        let after = [".git", ".git/worktrees/tree"].map(|dir| names(&ws.join(dir)));
        assert_eq!(after, before, "placeholders stay");
    }
}

#[test]
fn nor_in_a_submodule_or_from_a_linked_work_tree() {
    let machine = Machine::new();
    machine.repository("library");
    let ws = machine.repository("ws");
    machine.bash(
        &ws,
        "git -c protocol.file.allow=always submodule --quiet add ../library deep/sub && git commit -qm sub && \
         rm -rf .git/modules/deep/sub/hooks && git worktree add -q ../tree",
    );
    machine.each_works_free(&ws, IN_MODULES);
    machine.each_is_held(&ws, IN_MODULES);
    let done = machine.write(
        &ws,
        "cd deep/sub && echo x > new && git add new && git commit -qm x && git log --format=%s",
    );
    assert!(stdout(&done).starts_with("x\n"), "{done:?}");

    let from_tree: Vec<String> = DEEDS
        .iter()
        .filter(|line| !line.contains("mv .git "))
        .map(|line| line.replace(".git/", "../ws/.git/"))
        .collect();
    let from_tree: Vec<&str> = from_tree.iter().map(String::as_str).collect();
    machine.bash(&ws, "rm -rf .git/hooks .git/info .git/branches");
    machine.each_is_held(&machine.top.join("tree"), &from_tree);
}

#[test]
fn without_namespaces_neither_can_be_changed_or_made() {
    let machine = Machine::new().without_namespaces();
    let ws = bare_of_all(&machine);
    machine.each_is_held(&ws, DEEDS);
    let line = "git status -s && git log --format=%s && git hash-object -w one.txt && git fsck";
    let done = machine.write(&ws, line);
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn a_link_in_place_of_a_held_name_is_held_with_what_it_leads_to() {
    let machine = Machine::new();
    let ws = machine.repository("ws");
    machine.bash(
        &ws,
        "mkdir -p tools/hooks tools/more && echo x > tools/hooks/there && echo x > tools/more/pre-push && \
         rm -rf .git/hooks && ln -s ../tools/hooks .git/hooks && ln -s ../more/pre-push tools/hooks/pre-push",
    );
    let deeds = &[
        "rm .git/hooks",
        "mv .git/hooks .git/hooks2",
        "ln -sfn ../evil .git/hooks",
        "echo x > tools/hooks/pre-commit",
        "echo x > tools/hooks/there",
        "mv tools/hooks tools/hooks2",
        "mv tools tools2",
        "echo y > tools/more/pre-push",
        "mv tools/more tools/more2",
    ];
    machine.each_works_free(&ws, deeds);
    machine.each_is_held(&ws, deeds);
}

/// Scripts that move the git directory of a workspace to `deep/bare` inside it, with different ways to it.
const ELSEWHERE: [&str; 4] = [
    "mkdir deep && mv .git deep/bare && ln -s deep/bare .git",
    "mkdir deep && mv .git deep/bare && echo gitdir: deep/bare > .git",
    "mkdir deep && mv .git deep/bare && mkdir .git && cp deep/bare/HEAD .git && echo ../deep/bare > .git/commondir",
    "mkdir deep own && mv .git deep/bare && cp deep/bare/HEAD own && echo ../deep/bare > own/commondir && \
     echo gitdir: own > .git",
];

#[test]
fn what_git_leads_to_in_the_workspace_is_held() {
    let deeds = &[
        "echo x >> deep/bare/config",
        "echo x > deep/bare/hooks/pre-commit",
        "mv deep/bare/hooks x",
        "mv deep/bare x",
        "mv deep x",
        "echo x > deep/bare/config.worktree",
        "mkdir -p deep/bare/info && echo x > deep/bare/info/attributes",
        "rm .git && git init -q",
        "mv .git x",
    ];
    for lead in ELSEWHERE {
        let all = Machine::all().into_iter();
        let all = all.chain([Machine::new().without_namespaces()]);
        for (number, machine) in all.enumerate() {
            let ws = machine.repository("ws");
            machine.bash(&ws, &format!("mkdir -p .git/hooks; {lead}"));
            machine.bash(&ws, "git status -s && test $(git log --format=%s) = first");
            if number == 0 {
                machine.each_works_free(&ws, &deeds[..7]);
            }
            machine.each_is_held(&ws, deeds);
            machine.bash(&ws, "git status -s && test $(git log --format=%s) = first");
        }
    }
}

/// Each command works at the workspace level as it does unconfined.
const WORK: &[&str] = &[
    "git status -s",
    "echo a > a.txt && git add a.txt && git commit -qm a",
    "git branch one && git checkout -q one && echo b > b.txt && git add . && git commit -qm b",
    "git checkout -q main && echo c > c.txt && git add . && git commit -qm c",
    "git merge -q --no-edit one",
    "git checkout -q -b two HEAD~1 && echo d > d.txt && git add . && git commit -qm d && git rebase -q main",
    "git checkout -q main && git merge -q --ff-only two && git tag v1 && git tag -a v2 -m v2",
    "echo e >> a.txt && git stash -q && git stash pop -q && git stash -q && git stash drop -q",
    "git cherry-pick --allow-empty --keep-redundant-commits one && git reset -q --hard HEAD~1",
    "git revert --no-edit HEAD",
    "git bisect start -q HEAD HEAD~3 && git bisect good && git bisect reset",
    "git checkout -q -b mine HEAD~1 && echo mine > a.txt && git commit -qam mine && \
     git checkout -q main && echo theirs > a.txt && git commit -qam theirs",
    "! git rebase main mine",
    "echo both > a.txt && git add a.txt && GIT_EDITOR=true git rebase --continue && test ! -e .git/rebase-merge",
    "! git merge main~1 -s recursive --no-commit --no-ff && git merge --abort || git reset -q --hard",
    "git worktree list | grep tree",
    "git worktree add -q inner && git worktree remove inner",
    "git reset -q --hard HEAD~1 && git reflog | wc -l && git clean -fdq",
    "git gc -q --prune=now",
    "git repack -adq && git pack-refs --all && git prune",
    "git fsck --no-progress && git fsck --lost-found --no-progress",
    "git notes add -m note && git show --stat && git log --oneline --graph && git diff HEAD~1",
    "git archive HEAD | tar t && git describe --tags && git blame a.txt",
];

#[test]
fn git_works_where_mounts_hold_the_rest() {
    let machine = Machine::new();
    let ws = machine.repository("ws");
    machine.bash(&ws, "git worktree add -q ../tree");
    for line in WORK {
        let done = machine.write(&ws, line);
        assert!(done.status.success(), "{line}: {done:?}");
        // The files that gc writes for web servers without git support are not needed.
        let told = stdout(&done);
        let mut refused = told.lines().filter(|line| line.contains("Read-only"));
        assert!(
            refused.all(|line| line.contains("/.git/info/re")),
            "{line}: {told}"
        );
    }
    assert!(!ws.join(".git/commondir").exists());
    machine.bash(
        &ws,
        "git fsck --strict && git status -s && git -C ../tree status -s",
    );
}

#[test]
fn what_a_rebase_is_to_run_later_is_told() {
    let machine = Machine::new();
    let ws = machine.repository("ws");
    machine.bash(&ws, "echo 2 > one.txt && git commit -qam second");
    let rebase = |with: &str| {
        let stop = "sed -i '1s/^pick/edit/'";
        format!(
            "GIT_SEQUENCE_EDITOR=\"{stop}\" git rebase -q -i {with} HEAD~1; test -d .git/rebase-merge"
        )
    };
    for (line, told) in [(rebase("--exec ./evil"), true), (rebase(""), false)] {
        let done = machine.write(&ws, &line);
        assert!(done.status.success(), "{done:?}");
        let text = String::from_utf8_lossy(&done.stderr).into_owned() + &stdout(&done);
        let name = text.contains("rebase-merge/git-rebase-todo");
        assert_eq!(name, told, "{text}");
        machine.bash(&ws, "git rebase --abort");
    }
    assert!(fs::read_dir(ws.join(".git/hooks")).is_ok());
}
