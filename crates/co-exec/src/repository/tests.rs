use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::time::{Duration, SystemTime};

use super::*;
use crate::test_files;

/// A directory with a repository `.git`, and a workspace `work` beside it.
struct Place {
    _top: tempfile::TempDir,
    top: PathBuf,
    work: PathBuf,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let work = top.join("work");
        fs::create_dir(&work).unwrap();
        let place = Self {
            _top: dir,
            top,
            work,
        };
        place.git_dir(".git");
        place
    }

    fn write(&self, name: &str, text: &str) {
        test_files::write(&self.top, name, text);
    }

    fn git_dir(&self, name: &str) {
        self.write(&format!("{name}/HEAD"), "ref: refs/heads/main\n");
        for below in ["objects/pack", "refs"] {
            fs::create_dir_all(self.top.join(name).join(below)).unwrap();
        }
    }

    /// Waits until a change gets another time than earlier changes.
    fn wait_for_a_new_stamp(&self) {
        let stamp = |number: u32| {
            self.write("probe", &number.to_string());
            let facts = self.top.join("probe").metadata().unwrap();
            (facts.ctime(), facts.ctime_nsec())
        };
        let first = stamp(0);
        assert!((1..1_000_000).any(|number| stamp(number) != first));
    }

    /// The workspace as a linked work tree of the repository in `common`.
    fn link(&self, common: &str) {
        let own = format!("{common}/worktrees/tree");
        self.write("work/.git", &format!("gitdir: ../{own}\n"));
        self.write(&format!("{own}/HEAD"), "ref: refs/heads/tree\n");
        self.write(&format!("{own}/commondir"), "../..\n");
        let dot = self.work.join(".git");
        self.write(&format!("{own}/gitdir"), dot.to_str().unwrap());
    }

    /// The workspace as a submodule whose directory is `own`.
    fn module(&self, own: &str) {
        self.git_dir(own);
        self.write("work/.git", &format!("gitdir: ../{own}\n"));
        let text = format!("[core]\n\tworktree = {}\n", self.work.display());
        self.write(&format!("{own}/config"), &text);
    }

    #[track_caller]
    fn is_trusted(&self, common: &str) {
        let found = find(&self.work).unwrap().map(|dirs| dirs.common);
        assert_eq!(found, Some(self.top.join(common)));
    }

    #[track_caller]
    fn is_not(&self, why: &str) {
        let untrusted = find(&self.work).unwrap_err().to_string();
        assert!(untrusted.contains(why), "{untrusted}");
        assert_eq!(untrusted.lines().count(), 1, "{untrusted}");
    }
}

#[test]
fn nothing_and_an_empty_directory_are_no_repository() {
    let place = Place::new();
    assert_eq!(find(&place.work), Ok(None));
    fs::create_dir(place.work.join(".git")).unwrap();
    assert_eq!(find(&place.work), Ok(None));
}

#[test]
fn a_directory_is_trusted_unless_it_leads_out() {
    let place = Place::new();
    place.git_dir("work/.git");
    place.is_trusted("work/.git");
    place.write("work/.git/commondir", ".\n");
    place.is_trusted("work/.git");
    place.write("work/.git/commondir", "../../.git\n");
    place.is_not("commondir` names another repository");
    fs::remove_dir_all(place.work.join(".git")).unwrap();
    symlink("../.git", place.work.join(".git")).unwrap();
    place.is_not("a link that leads out of the workspace");
    fs::remove_file(place.work.join(".git")).unwrap();
    place.git_dir("work/data");
    symlink("data", place.work.join(".git")).unwrap();
    place.is_trusted("work/data");
}

#[test]
fn a_directory_that_shows_another_repository_is_not_trusted() {
    for name in ["refs", "objects", "HEAD", "objects/pack/one.pack"] {
        let place = Place::new();
        place.git_dir("work/.git");
        let path = place.work.join(".git").join(name);
        let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        symlink(place.top.join(".git"), path).unwrap();
        place.is_not("a link that leads out of the repository");
    }
    let place = Place::new();
    place.git_dir("work/.git");
    symlink("../../githooks", place.work.join(".git/hooks")).unwrap();
    place.is_trusted("work/.git");
    place.write("work/.git/objects/info/alternates", "/elsewhere\n");
    place.is_not("names objects of another repository");
}

#[test]
fn links_far_below_are_seen_however_often_it_is_looked() {
    let place = Place::new();
    let git = place.work.join(".git");
    place.git_dir("work/.git");
    place.write("work/.git/objects/ab/cdef", "");
    place.write("work/.git/refs/heads/deep/main", "");
    place.write("work/.git/logs/refs/heads/main", "");
    // As long as a directory is new, it is read each time.
    for known in [false, true] {
        place.is_trusted("work/.git");
        for name in [
            "objects/ab",
            "objects/cd",
            "refs/heads/deep",
            "refs",
            "logs",
            "logs/refs/heads",
        ] {
            fs::create_dir_all(git.join(name)).unwrap();
            if known {
                place.wait_for_a_new_stamp();
                let later = SystemTime::now() + Duration::from_secs(10);
                links::check_links(&git, later).unwrap();
            }
            let link = git.join(name).join("link");
            symlink(place.top.join(".git/HEAD"), &link).unwrap();
            place.is_not("a link that leads out of the repository");
            fs::remove_file(link).unwrap();
            place.is_trusted("work/.git");
        }
    }
    symlink("..", git.join("refs/round")).unwrap();
    symlink("main", git.join("refs/heads/deep/same")).unwrap();
    place.is_trusted("work/.git");
    fs::create_dir(git.join("x")).unwrap();
    symlink("../x", git.join("objects/ef")).unwrap();
    place.is_trusted("work/.git");
    symlink(place.top.join(".git/HEAD"), git.join("x/link")).unwrap();
    place.is_not("a link that leads out of the repository");
}

#[test]
fn a_linked_work_tree_is_trusted_if_both_ends_name_each_other() {
    let place = Place::new();
    place.link(".git");
    place.is_trusted(".git");
    let own = place.top.join(".git/worktrees/tree");
    for (file, text) in [("commondir", "../../.."), ("gitdir", "/elsewhere/.git")] {
        place.link(".git");
        fs::write(own.join(file), text).unwrap();
        place.is_not("does not name this workspace");
        fs::remove_file(own.join(file)).unwrap();
        place.is_not("does not name this workspace");
    }
    place.link(".git");
    place.write(".git/commondir", "../elsewhere");
    place.is_not("names another repository");
    fs::remove_file(place.top.join(".git/commondir")).unwrap();
    fs::remove_dir_all(place.top.join(".git/refs")).unwrap();
    place.is_not("does not name this workspace");
}

#[test]
fn a_submodule_is_trusted_if_its_configuration_names_the_workspace() {
    for own in [
        ".git/modules/sub",
        ".git/modules/deep/sub",
        ".git/modules/sub/modules/inner",
        ".git/worktrees/tree/modules/sub",
    ] {
        let place = Place::new();
        place.module(own);
        place.is_trusted(own);
        place.write(&format!("{own}/commondir"), "../../..");
        place.is_not("names another repository");
        place.write(&format!("{own}/commondir"), ".");
        place.is_trusted(own);
        place.write(&format!("{own}/config"), "[core]\n\tbare = false\n");
        place.is_not("does not name this workspace");
        place.write(
            &format!("{own}/config"),
            "[x]\n\tworktree = ../../../work\n",
        );
        place.is_not("does not name this workspace");
    }
    let place = Place::new();
    place.module("elsewhere/modules/sub");
    place.is_not("does not name this workspace");
    let place = Place::new();
    place.module(".git/modules/sub");
    place.link(".git/modules/sub");
    place.is_trusted(".git/modules/sub");
}

#[test]
fn a_configuration_that_git_may_understand_differently_names_no_workspace() {
    let place = Place::new();
    let own = ".git/modules/sub";
    place.module(own);
    let config = format!("{own}/config");
    let plain = format!("[core]\n\tworktree = {}\n", place.work.display());
    let work = place.work.display();
    for before in [
        "",
        "# x\n\n; y\n",
        "[remote \"a b\"]\n\turl = x\n\tmirror\n[x.y]\r\n",
        "[core]\n\tbare = false\n[x]\n\tworktree = \"a\\\\b\" # c\n",
    ] {
        place.write(&config, &format!("{before}{plain}"));
        place.is_trusted(own);
    }
    place.write(&config, &plain.replace("core", "CORE").replace(" = ", "="));
    place.is_trusted(own);
    for odd in [
        "[core] worktree = /elsewhere\n",
        "[core] # x\n\tworktree = /elsewhere\n",
        "[core];\n\tworktree = /elsewhere\n",
        "[ core]\n",
        "[core ]\n",
        "[x \"a\\\"b\"]\n",
        "[x  \"y\"]\n",
        "[core]\n\tworktree\n",
        "[core]\n\tworktree =\n",
        "\u{feff}[core]\n\tworktree = /elsewhere\n",
        "[x]\n\ty = a\\\n",
        "[x]\n\ty = a\\\r\n",
        "[core]\r\tworktree = /elsewhere\n",
    ] {
        for text in [format!("{odd}{plain}"), format!("{plain}{odd}")] {
            place.write(&config, &text);
            place.is_not("does not name this workspace");
        }
    }
    for value in [
        format!("\"{work}\""),
        format!("{work}#"),
        format!("{work} ; x"),
        format!("{work}\\"),
        format!("{work}\n\tworktree = {work}"),
        format!("{work}\u{a0}"),
        format!("{work}\u{b}"),
    ] {
        place.write(&config, &format!("[core]\n\tworktree = {value}\n"));
        place.is_not("does not name this workspace");
    }
    place.write(&config, &plain);
    place.write(&format!("{own}/config.worktree"), &plain);
    place.is_not("does not name this workspace");
    let odd = place.top.join(own).join("config.worktree");
    fs::write(odd, b"[x]\n\ty = \xff\n").unwrap();
    place.is_not("does not name this workspace");
}

#[test]
fn a_blank_at_the_end_is_part_of_a_name() {
    let place = Place::new();
    place.git_dir("work/.git");
    place.git_dir("work/.git/. ");
    for text in [".", ".\r\n", ".\n\n"] {
        place.write("work/.git/commondir", text);
        place.is_trusted("work/.git");
    }
    for text in [". \n", ".\t", "\n.", " ."] {
        place.write("work/.git/commondir", text);
        place.is_not("commondir` names another repository");
    }
    let place = Place::new();
    place.link(".git");
    symlink("../.git/worktrees/tree", place.work.join("y")).unwrap();
    place.write("work/.git", "gitdir: y\r\n");
    place.is_trusted(".git");
    place.git_dir("work/y ");
    place.write("work/.git", "gitdir: y \n");
    place.is_not("does not name this workspace");
    for text in ["gitdir:y\n", "gitdir:  y\n", "gitdir: y\t\n"] {
        place.write("work/.git", text);
        place.is_not("names no directory");
    }
}

#[test]
fn what_a_command_could_have_written_is_not_trusted() {
    let place = Place::new();
    place.git_dir("work/data");
    place.link("work/data");
    place.is_not("where commands can write");
    let place = Place::new();
    place.git_dir("co-tmp-x/data");
    place.link("co-tmp-x/data");
    place.is_not("where commands can write");
    let place = Place::new();
    place.git_dir("work/data");
    place.module("work/data/modules/sub");
    place.is_not("does not name this workspace");
}

#[test]
fn what_belongs_to_another_user_is_not_trusted() {
    if rustix::process::geteuid().is_root() {
        for owned in [".git", ".git/worktrees/tree"] {
            let place = Place::new();
            place.link(".git");
            std::os::unix::fs::chown(place.top.join(owned), Some(54_321), None).unwrap();
            place.is_not("belongs to another user");
        }
    }
}

#[test]
fn a_file_that_names_nothing_is_not_trusted() {
    let place = Place::new();
    for text in ["", "gitdir: nowhere\n", "../.git\n"] {
        place.write("work/.git", text);
        place.is_not("the file `.git` names no directory");
    }
    fs::remove_file(place.work.join(".git")).unwrap();
    nix::unistd::mkfifo(&place.work.join(".git"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    place.is_not("neither a directory nor a file");
}

#[test]
fn the_git_directories_in_a_workspace_are_found_whatever_leads_to_them() {
    let check = |make: &str, expected: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let mut bash = std::process::Command::new("bash");
        let done = bash.args(["-ec", make]).current_dir(&root).status();
        assert!(done.unwrap().success(), "{make}");
        let expected: Vec<_> = expected.iter().map(|name| root.join(name)).collect();
        assert_eq!(inside(&root), expected, "{make}");
    };
    check("true", &[]);
    check("mkdir .git", &[".git"]);
    check("mkdir a; ln -s a .git", &["a"]);
    check("mkdir a; echo gitdir: a > .git", &["a"]);
    check(
        "mkdir a b; echo gitdir: a > .git; echo ../b > a/commondir",
        &["a", "b"],
    );
    check("mkdir .git; echo . > .git/commondir", &[".git"]);
    check("mkdir .git; echo /etc > .git/commondir", &[".git"]);
    check("echo gitdir: . > .git", &[""]);
    check("ln -s / .git", &[]);
    check("echo gitdir: nowhere > .git", &[]);
    check("mkfifo .git", &[]);
}

#[test]
fn the_own_paths_of_git_are_known_by_the_directory_around_them() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for name in [
        "bare/objects/x",
        "bare/refs/x",
        "bare/HEAD",
        "bare/README.md",
        "src/refs/x",
        "src/HEAD",
    ] {
        crate::test_files::write(root, name, "");
    }
    for path in [
        "bare/hooks/new/x",
        "bare/config",
        "bare/HEAD",
        "bare/index.lock",
    ] {
        assert!(is_below_gits(root, &root.join(path)), "{path}");
    }
    for path in [
        "bare",
        "bare/README.md",
        "bare/main/config",
        "src/HEAD",
        "src/config",
        "config",
    ] {
        assert!(!is_below_gits(root, &root.join(path)), "{path}");
    }
    // What is above the workspace does not count.
    assert!(!is_below_gits(
        &root.join("bare/hooks"),
        &root.join("bare/hooks/x")
    ));
}
