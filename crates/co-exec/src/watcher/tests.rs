use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;
use crate::test_files;

/// A workspace, and its watcher.
struct Scene {
    dir: tempfile::TempDir,
    root: PathBuf,
    watcher: Watcher,
    mark: Option<ChangeMark>,
}

impl Scene {
    fn new(files: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("work");
        for name in files {
            test_files::write(&root, name, "x");
        }
        let watcher = Watcher::new(&root).unwrap();
        let mark = watcher.changes(None).unwrap().mark;
        Self {
            dir,
            root,
            watcher,
            mark,
        }
    }

    /// Runs a program of bash in the workspace, and returns the directories that changed.
    #[track_caller]
    fn after(&mut self, script: &str) -> Vec<String> {
        let mut bash = std::process::Command::new("bash");
        let done = bash.args(["-ec", script]).current_dir(&self.root).status();
        assert!(done.unwrap().success(), "{script}");
        let changes = self.watcher.changes(self.mark.as_ref()).unwrap();
        self.mark = changes.mark;
        let below = |path: &Arc<Path>| {
            let below = path.strip_prefix(&self.root).unwrap();
            below.display().to_string()
        };
        let mut dirs: Vec<_> = changes.dirs.unwrap().iter().map(below).collect();
        dirs.sort();
        dirs
    }
}

#[test]
fn it_names_the_directories_whose_files_changed() {
    let mut scene = Scene::new(&["a/b/c", "a/d", "e/f"]);
    assert!(scene.after("cat a/d e/f; ls -R .").is_empty());
    assert_eq!(scene.after("echo y > a/b/c"), ["a/b"]);
    assert_eq!(scene.after("chmod 700 e/f"), ["e"]);
    assert_eq!(scene.after("touch -d 2020-01-01 a/d; rm e/f"), ["a", "e"]);
    assert_eq!(scene.after("ln -s /tmp e/link"), ["e"]);
    assert!(scene.after("true").is_empty());
}

#[test]
fn it_names_new_directories_and_all_in_them() {
    let mut scene = Scene::new(&["a/b/c"]);
    assert_eq!(scene.after("mkdir -p n/m"), ["", "n", "n/m"]);
    assert_eq!(scene.after("echo x > n/m/f"), ["n/m"]);
    assert_eq!(scene.after("mv n a/b"), ["", "a/b", "a/b/n", "a/b/n/m"]);
    assert_eq!(scene.after("echo x > a/b/n/m/f"), ["a/b/n/m"]);
    let again = scene.after("rm -r a/b/n; mkdir a/b/n; echo x > a/b/n/f");
    assert!(again.contains(&"a/b/n".to_owned()));
    assert_eq!(scene.after("echo y > a/b/n/f"), ["a/b/n"]);
    // Under the old name, there is another directory.
    scene.after("mv a/b/n z; mkdir a/b/n");
    assert_eq!(scene.after("echo y > a/b/n/f"), ["a/b/n"]);
    assert_eq!(scene.after("echo y > z/f"), ["z"]);
    assert_eq!(scene.watcher.directories(), 5);
}

#[test]
fn a_directory_that_becomes_a_link_is_no_longer_watched() {
    let mut scene = Scene::new(&["a/b/c", "d/e"]);
    let outside = scene.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    assert_eq!(
        scene.after("mv a d; ln -s ../outside a"),
        ["", "d", "d/a", "d/a/b"]
    );
    fs::write(outside.join("x"), "x").unwrap();
    assert!(scene.after("true").is_empty());
    assert_eq!(scene.after("echo y > d/a/b/c"), ["d/a/b"]);
}

#[test]
fn directories_that_exchange_their_names_stay_watched() {
    let mut scene = Scene::new(&["a/deep/x", "b/deep/x"]);
    let exchange = |one: &str, other: &str| {
        let [one, other] = [one, other].map(|it| scene.root.join(it));
        renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
    };
    exchange("a", "b");
    exchange("a/deep", "b/deep");
    scene.after("true");
    for dir in ["a", "a/deep", "b", "b/deep"] {
        assert_eq!(scene.after(&format!("echo y > {dir}/new")), [dir]);
    }
    assert_eq!(scene.watcher.directories(), 5);
}

#[test]
fn a_write_through_a_name_that_is_gone_is_told() {
    let mut scene = Scene::new(&["a/one"]);
    let mut file = File::options()
        .append(true)
        .open(scene.root.join("a/one"))
        .unwrap();
    scene.after("ln a/one a/other; rm a/one");
    file.write_all(b"y").unwrap();
    assert_eq!(scene.after("true"), ["a"]);
}

#[test]
fn a_mark_of_another_watcher_tells_nothing() {
    let scene = Scene::new(&["a/b"]);
    let other = Watcher::new(&scene.root).unwrap();
    let changes = other.changes(scene.mark.as_ref()).unwrap();
    assert!(changes.mark.is_some() && changes.dirs.is_none());
    // Another call with a mark of this one gets all since then, as often as it asks.
    fs::write(scene.root.join("a/b"), "y").unwrap();
    for _ in 0..2 {
        let dirs = other.changes(changes.mark.as_ref()).unwrap().dirs;
        assert_eq!(dirs.unwrap().len(), 1);
    }
}

#[test]
fn it_ends_if_it_may_have_missed_something() {
    // A workspace that is moved, also with a directory above it.
    let scene = Scene::new(&["a/b"]);
    fs::rename(&scene.root, scene.root.with_file_name("moved")).unwrap();
    assert!(scene.watcher.changes(scene.mark.as_ref()).is_none());
    fs::create_dir(&scene.root).unwrap();
    assert!(scene.watcher.changes(scene.mark.as_ref()).is_none());

    let scene = Scene::new(&["inner/a/b"]);
    let inner = Watcher::new(&scene.root.join("inner")).unwrap();
    fs::rename(&scene.root, scene.root.with_file_name("moved")).unwrap();
    symlink("moved", &scene.root).unwrap();
    assert!(inner.changes(None).is_none());

    // More events than the queue of the kernel takes.
    let scene = Scene::new(&["a/b"]);
    let (one, other) = (scene.root.join("a/1"), scene.root.join("a/2"));
    fs::write(&one, "").unwrap();
    for _ in 0..10_000 {
        fs::rename(&one, &other).unwrap();
        fs::rename(&other, &one).unwrap();
    }
    assert!(scene.watcher.changes(scene.mark.as_ref()).is_none());
}

#[test]
fn it_is_not_made_where_changes_are_not_told() {
    let error = Watcher::new(Path::new("/proc/self/task")).unwrap_err();
    assert!(matches!(error, UnwatchedReason::FileSystem), "{error}");
    assert_eq!(unescaped(br"/a\040b\\c\134d"), Path::new(r"/a b\\c\d"));
}

#[test]
fn a_watcher_starts_in_the_background_and_again_after_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let watchers = Watchers::default();
    assert!(watchers.changes(&root, None).mark.is_none());
    let first = started(&watchers, &root);
    fs::write(root.join("a"), "x").unwrap();
    let changes = watchers.changes(&root, Some(&first));
    assert_eq!(changes.dirs.unwrap().len(), 1);
    let moved = root.with_extension("moved");
    fs::rename(&root, &moved).unwrap();
    assert!(watchers.changes(&root, Some(&first)).mark.is_none());
    fs::rename(&moved, &root).unwrap();
    let second = started(&watchers, &root);
    assert!(watchers.changes(&root, Some(&first)).dirs.is_none());
    assert!(watchers.changes(&root, Some(&second)).dirs.is_some());
}

#[test]
fn only_the_start_of_a_watcher_has_a_low_priority() {
    let nice = || rustix::process::getpriority_process(None).unwrap();
    let before = nice();
    let inside = at_low_priority(nice).unwrap();
    assert_eq!(inside, (before + NICE_INCREMENT).min(19));
    assert_eq!(nice(), before);
}

#[test]
fn a_watcher_ends_with_the_last_clone_of_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let watchers = Watchers::default();
    let mark = started(&watchers, &root);
    let clone = watchers.clone();
    drop(watchers);
    assert!(clone.changes(&root, Some(&mark)).dirs.is_some());
    drop(clone);
    let late = Instant::now() + Duration::from_secs(20);
    while Arc::strong_count(&mark.watcher) > 1 {
        assert!(Instant::now() < late, "it did not end");
        thread::yield_now();
    }
}

/// Starts a watcher, and returns its first mark.
fn started(watchers: &Watchers, root: &Path) -> ChangeMark {
    let late = Instant::now() + Duration::from_secs(20);
    loop {
        watchers.start(root);
        if let Some(mark) = watchers.changes(root, None).mark {
            return mark;
        }
        assert!(Instant::now() < late, "no watcher started");
        thread::yield_now();
    }
}
