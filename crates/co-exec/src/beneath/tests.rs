use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use super::*;
use crate::test_files;

/// Has a workspace `work` beside a directory `outside`, and links between them.
struct Scene {
    top: PathBuf,
    work: Dir,
    _dir: TempDir,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        test_files::write(&top, "work/a/b/file", "inside");
        test_files::write(&top, "outside/b/file", "outside");
        test_files::write(&top, "outside/file", "outside");
        symlink("a", top.join("work/inner")).unwrap();
        symlink("../outside", top.join("work/outer")).unwrap();
        symlink("file", top.join("work/a/b/link")).unwrap();
        symlink(top.join("outside/file"), top.join("work/away")).unwrap();
        nix::unistd::mkfifo(&top.join("work/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let work = Dir::open(&top.join("work")).unwrap();
        Self {
            top,
            work,
            _dir: dir,
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    /// Returns the paths of all files below `outside`, with their contents.
    fn outside(&self) -> Vec<(PathBuf, Option<String>)> {
        let mut found = Vec::new();
        let mut todo = vec![self.at("outside")];
        while let Some(path) = todo.pop() {
            found.push((path.clone(), fs::read_to_string(&path).ok()));
            if path.is_dir() {
                todo.extend(path.read_dir().unwrap().map(|it| it.unwrap().path()));
            }
        }
        found.sort();
        found
    }
}

const LINK: &str = "it or a directory above it is a link now";

/// Checks the result of opening a path in one call, and part by part.
#[track_caller]
fn check(path: &str, flags: OFlags, expected: Result<(), Errno>) {
    let scene = Scene::new();
    let path = Path::new(path);
    let opened = scene.work.beneath(path, flags).map(drop);
    assert_eq!(opened, expected, "{path:?}");
    if checked(path).is_ok() {
        let opened = scene.work.by_parts(checked(path).unwrap(), flags);
        assert_eq!(opened.map(drop), expected, "{path:?} part by part");
    }
}

#[test]
fn no_path_leads_through_a_link_or_upwards() {
    check("", DIRECTORY, Ok(()));
    check("a/b", DIRECTORY, Ok(()));
    check("a/./b/", DIRECTORY, Ok(()));
    check("a/b/file", READ, Ok(()));
    check("a/b/file", DIRECTORY, Err(Errno::NOTDIR));
    check("a/b/file/c", NAMED, Err(Errno::NOTDIR));
    check("a/none/c", NAMED, Err(Errno::NOENT));
    // A link can be named, but no more.
    check("a/b/link", NAMED, Ok(()));
    check("outer", NAMED, Ok(()));
    check("a/b/link", READ, Err(Errno::LOOP));
    check("away", READ, Err(Errno::LOOP));
    check("outer", DIRECTORY, Err(Errno::LOOP));
    for flags in [NAMED, READ] {
        check("inner/b/file", flags, Err(Errno::LOOP));
        check("outer/file", flags, Err(Errno::LOOP));
        check("outer/b/file", flags, Err(Errno::LOOP));
        check("../outside/file", flags, Err(Errno::INVAL));
        check("a/../a/b/file", flags, Err(Errno::INVAL));
        check("/etc/passwd", flags, Err(Errno::INVAL));
    }
}

#[test]
fn a_workspace_behind_a_link_is_refused() {
    let scene = Scene::new();
    symlink("work", scene.at("alias")).unwrap();
    let why = |path: &str| Dir::open(&scene.at(path)).unwrap_err().to_string();
    assert_eq!(why("alias"), LINK);
    assert_eq!(why("alias/a"), LINK);
    assert!(Dir::open(Path::new("work")).is_err());
    assert!(
        Dir::open(Path::new("/"))
            .unwrap()
            .find("etc")
            .unwrap()
            .is_some()
    );
}

#[test]
fn a_path_that_is_too_long_for_one_call_is_opened() {
    let scene = Scene::new();
    let path: PathBuf = (0..40).map(|_| "x".repeat(200)).collect();
    scene.work.make_dirs(&path).unwrap();
    assert!(path.as_os_str().len() > 4096);
    let names = |path: &Path| scene.work.dir(path).unwrap().names().unwrap();
    assert_eq!(names(path.parent().unwrap()).len(), 1);
}

#[test]
fn only_a_regular_file_is_read() {
    let scene = Scene::new();
    let work = &scene.work;
    assert_eq!(work.read("a/b/file", 6).unwrap(), b"inside");
    let why = |path: &str| work.read(path, 5).unwrap_err().to_string();
    assert_eq!(why("a/b/file"), "it is larger than 5 bytes");
    for path in ["pipe", "a", ""] {
        assert_eq!(why(path), "it is not a regular file", "{path}");
    }
    for path in ["away", "outer/file", "a/b/link"] {
        assert_eq!(why(path), LINK, "{path}");
    }
    let none = work.read("a/none", 5).unwrap_err();
    assert_eq!(none.kind(), io::ErrorKind::NotFound);
}

#[test]
fn facts_are_those_of_the_link_itself() {
    let scene = Scene::new();
    let kind = |path: &str| scene.work.node(path).unwrap().map(|node| node.kind);
    assert_eq!(kind("a/b/file"), Some(Kind::File));
    assert_eq!(kind(""), Some(Kind::Dir));
    assert_eq!(kind("outer"), Some(Kind::Link));
    assert_eq!(kind("a/b/link"), Some(Kind::Link));
    assert_eq!(kind("pipe"), Some(Kind::Special("a FIFO")));
    for path in ["none", "outer/file", "inner/b", "a/b/file/c"] {
        assert_eq!(kind(path), None, "{path}");
    }
    assert_eq!(scene.work.target("outer").unwrap(), Path::new("../outside"));
    let mut listed: Vec<_> = scene.work.list().unwrap().map(Result::unwrap).collect();
    listed.sort_by(|a, b| a.0.cmp(&b.0));
    let kinds = listed
        .iter()
        .map(|(name, kind)| (name.to_str().unwrap(), *kind));
    let expected = [
        ("a", FileType::Directory),
        ("away", FileType::Symlink),
        ("inner", FileType::Symlink),
        ("outer", FileType::Symlink),
        ("pipe", FileType::Fifo),
    ];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
}

#[test]
fn nothing_is_changed_behind_a_link() {
    let scene = Scene::new();
    let (work, before) = (&scene.work, scene.outside());
    assert!(work.make_dirs("outer/new").is_err());
    assert!(work.make_link(Path::new("x"), "outer/new").is_err());
    assert!(work.remove_file("outer/file").is_err());
    assert!(work.remove_dir("outer/b").is_err());
    assert!(work.set_mode("outer/file", 0o777).is_err());
    assert!(work.set_mode("away", 0o777).is_err());
    assert!(
        work.rename_new(Path::new("outer/file"), Path::new("taken"))
            .is_err()
    );
    assert!(
        work.rename_new(Path::new("a/b/file"), Path::new("outer/given"))
            .is_err()
    );
    assert_eq!(scene.outside(), before);
    assert_eq!(
        scene.at("outside/file").metadata().unwrap().mode() & 0o111,
        0
    );
}

#[test]
fn an_unfinished_file_gets_its_name_or_is_removed() {
    let scene = Scene::new();
    let dir = scene.work.dir("a/b").unwrap();
    let names = || {
        let mut names = dir.names().unwrap();
        names.sort();
        names
    };
    let before = names();
    drop(dir.make_unfinished(".new-", 0o600).unwrap());
    assert_eq!(names(), before);
    let (unfinished, _file) = dir.make_unfinished(".new-", 0o600).unwrap();
    let refused = unfinished.create("file".as_ref()).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(names(), before);
    let (unfinished, _file) = dir.make_unfinished(".new-", 0o600).unwrap();
    unfinished.replace("link".as_ref()).unwrap();
    assert_eq!(dir.node("link").unwrap().unwrap().kind, Kind::File);
    let link = dir.make_unfinished_link(".new-", Path::new("x")).unwrap();
    link.create("other".as_ref()).unwrap();
    assert_eq!(dir.target("other").unwrap(), Path::new("x"));
    assert_eq!(names().len(), before.len() + 1);
}

#[test]
fn directories_that_become_links_lead_nowhere() {
    let scene = Scene::new();
    symlink(scene.at("outside"), scene.at("work/swap")).unwrap();
    let (work, before) = (&scene.work, scene.outside());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let swap = RenameFlags::EXCHANGE;
                renameat_with(work, "a", work, "swap", swap).unwrap();
            }
        });
        for _ in 0..2_000 {
            let write = || {
                let dir = work.dir("a")?;
                let (unfinished, _file) = dir.make_unfinished(".new-", 0o600)?;
                unfinished.replace("file".as_ref())?;
                dir.remove_file("file")
            };
            let _refused = (write(), work.make_dirs("a/b/c"));
            if let Ok(bytes) = work.read("a/b/file", 100) {
                assert_eq!(bytes, b"inside");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(scene.outside(), before);
}
