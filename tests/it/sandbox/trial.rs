//! The trial level: a command changes the workspace as it likes, and all of it lands in the layer.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use co_exec::Confinement;
use co_exec::sandbox::{HidingRefusal, Launcher, SandboxRefusal, SandboxSupport};

use super::hostile::python;
use super::scene::{SOMEBODY, Scene, am_root, older, stdout, support};

/// The users that tests run as: that of the tests, and an ordinary one.
pub(super) fn users() -> Vec<Option<u32>> {
    let support = support();
    assert!(support.trials, "no trials here: {support:?}");
    let other = am_root().then_some(Some(SOMEBODY));
    [None].into_iter().chain(other).collect()
}

/// Runs a line in a trial. Checks that nothing changed but the layer, and that the line printed this.
#[track_caller]
pub(super) fn check_in(scene: &Scene, line: &str, printed: &str) {
    let before = scene.snapshot();
    let done = scene.bash(&scene.trial(), &format!("{{ {line}\n}} 2>&1"));
    assert_eq!(stdout(&done), printed, "{line}: {done:?}");
    assert_eq!(scene.snapshot(), before, "{line}");
}

#[track_caller]
fn check(line: &str, printed: &str) {
    for user in users() {
        let scene = Scene::new(user);
        fs::create_dir_all(scene.ws.join("dir/deep")).unwrap();
        fs::write(scene.ws.join("dir/deep/file"), "deep\n").unwrap();
        std::os::unix::fs::symlink("one.txt", scene.ws.join("link")).unwrap();
        scene.hand_over();
        check_in(&scene, line, printed);
    }
}

#[test]
fn a_command_sees_what_it_wrote_and_the_workspace_does_not() {
    check("echo more >> one.txt; cat one.txt", "one\n2\nthree\nmore\n");
    check(
        "echo new > new; mkdir -p a/b; echo x > a/b/c; cat new a/b/c",
        "new\nx\n",
    );
    check(
        "rm one.txt; ls; rm -r dir; ls",
        "data.json\ndir\nlink\nlink-to-key\ndata.json\nlink\nlink-to-key\n",
    );
    check(
        "mv one.txt two.txt; cat two.txt; ls one.txt",
        "one\n2\nthree\nls: cannot access 'one.txt': No such file or directory\n",
    );
    check("mv -f data.json one.txt; cat one.txt", "{\"a\": [1, 2]}\n");
    check(
        "rm -r dir; mkdir dir; ls -A dir; echo x > dir/y; ls dir",
        "y\n",
    );
    check(
        "ln -sf dir/deep link; readlink link; echo x >> link/file; cat dir/deep/file",
        "dir/deep\ndeep\nx\n",
    );
    check(
        "chmod 600 one.txt; stat -c %a one.txt; touch -d @1 one.txt; stat -c %Y one.txt",
        "600\n1\n",
    );
    check(
        "printf x > $'a\\nb'; printf y > $'\\xff'; ls -A | wc -l; cat $'a\\nb' $'\\xff'",
        "9\nxy",
    );
    check(
        "git commit -qam second; git log --format=%s; git status --short",
        "second\nfirst\n?? dir/\n?? link\n?? link-to-key\n",
    );
    check(
        "echo '#!/bin/sh' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; git config a.b c; git config a.b",
        "c\n",
    );
    check("echo x > .envrc; cat .envrc", "x\n");
    check(
        "python3 -c 'import tempfile; f = tempfile.TemporaryFile(dir=\".\"); f.write(b\"x\"); print(f.tell())'",
        "1\n",
    );
}

#[test]
fn the_layer_has_the_changes_as_the_kernel_writes_them() {
    for user in users() {
        let scene = Scene::new(user);
        fs::create_dir(scene.ws.join("dir")).unwrap();
        fs::write(scene.ws.join("dir/old"), "").unwrap();
        fs::set_permissions(&scene.ws, fs::Permissions::from_mode(0o2751)).unwrap();
        scene.hand_over();
        let line = "rm one.txt; rm -r dir; mkdir dir; echo new > new; chmod 640 data.json";
        check_in(&scene, line, "");
        let upper = scene.layer.join("upper");
        let facts = |name: &str| upper.join(name).symlink_metadata().unwrap();
        assert_eq!(fs::read_to_string(upper.join("new")).unwrap(), "new\n");
        assert!(facts("one.txt").file_type().is_char_device() && facts("one.txt").rdev() == 0);
        assert_eq!(facts("data.json").mode() & 0o7777, 0o640);
        assert_eq!(facts("").mode() & 0o7777, 0o2751);
        let mut opaque = [0; 8];
        let read = rustix::fs::getxattr(upper.join("dir"), "user.overlay.opaque", &mut opaque);
        assert_eq!(&opaque[..read.unwrap()], b"y");
        // The next command goes on from there.
        check_in(
            &scene,
            "ls; echo more >> new; cat new",
            "data.json\ndir\nlink-to-key\nnew\nnew\nmore\n",
        );
    }
}

#[test]
fn nothing_outside_is_written_or_read() {
    let lines = [
        "echo x > ../out/new",
        "echo x > ../home/new",
        "chmod 700 ../out/file",
        "touch ../out/file",
        "mv ../out/file .",
        "ln ../out/file linked",
        "cat ../home/.ssh/id",
        "cat link-to-key",
        "ls ../home",
        "ls ../layer",
        "echo x > ../layer/upper/new",
        "rm -r ../layer/work",
        "mv ../ws ../ws2",
        "mknod null c 1 3",
        "mknod whiteout c 0 0",
        "chmod u+s one.txt",
        "setfattr -n user.overlay.opaque -v y .",
        "unshare -U true",
        "unshare -m true",
        "mount -t tmpfs co .",
        "umount .",
        "ls /proc/1/root$PWD/../out",
    ];
    for user in users() {
        let scene = Scene::new(user);
        fs::write(scene.out.join("file"), "before\n").unwrap();
        scene.hand_over();
        let each = |line: &&str| {
            format!(
                "( {line} ) 2> /dev/null && echo {}\n",
                line.replace(['>', '&', '/'], " ")
            )
        };
        let script: String = lines.iter().map(each).collect();
        check_in(&scene, &script, "");
    }
}

/// The workspace of a scene is in `/tmp`, so that stays as it is.
#[test]
fn var_tmp_is_private() {
    let name = format!("/var/tmp/co-test-{}", std::process::id());
    fs::write(&name, "").unwrap();
    for user in users() {
        let scene = Scene::new(user);
        scene.hand_over();
        let lines =
            "ls -A /var/tmp; echo x > /var/tmp/a; cat $TMPDIR/a; mkdir /var/tmp/d; ls /var/tmp";
        check_in(&scene, lines, "x\na\nd\n");
        assert!(!Path::new("/var/tmp/a").exists());
    }
    fs::remove_file(name).unwrap();
}

#[test]
fn its_own_servers_work_and_nothing_else_is_reached() {
    for user in users() {
        let scene = Scene::new(user);
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let editor = scene.ws.join("editor.sock");
        let _editor = UnixListener::bind(&editor).unwrap();
        fs::set_permissions(&editor, fs::Permissions::from_mode(0o777)).unwrap();
        scene.hand_over();
        let own = "import socket\n\
                   for family, host in (socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1'):\n    \
                   server = socket.create_server((host, 0), family=family)\n    \
                   client = socket.create_connection(server.getsockname()[:2])\n    \
                   server.accept()[0].sendall(b'hello')\n    \
                   print(host, client.recv(9).decode())\n\
                   a, b = socket.socketpair()\n\
                   a.sendall(b'x')\n\
                   print(b.recv(1).decode())\n";
        let done = scene.run(&scene.trial(), &[python(), "-c", own]);
        assert_eq!(stdout(&done), "127.0.0.1 hello\n::1 hello\nx\n", "{done:?}");
        let outside = format!(
            "import socket\n\
             def attempt(family, address, kind=socket.SOCK_STREAM):\n    \
             try: socket.socket(family, kind).connect(address)\n    \
             except OSError as error: print(error.strerror)\n    \
             else: print('went through', address)\n\
             attempt(socket.AF_INET, ('127.0.0.1', {port}))\n\
             attempt(socket.AF_INET, ('192.0.2.1', 80))\n\
             attempt(socket.AF_INET6, ('2001:db8::1', 80))\n\
             attempt(socket.AF_UNIX, 'editor.sock')\n\
             attempt(socket.AF_UNIX, 'editor.sock', socket.SOCK_DGRAM)\n\
             attempt(socket.AF_NETLINK, (0, 0), socket.SOCK_RAW)\n"
        );
        let done = scene.run(&scene.trial(), &[python(), "-c", &outside]);
        let wanted = "Connection refused\nNetwork is unreachable\nNetwork is unreachable\n\
                      Operation not permitted\nOperation not permitted\nOperation not permitted\n";
        assert_eq!(stdout(&done), wanted, "{done:?}");
    }
}

#[test]
fn a_workspace_may_have_any_name() {
    for user in users() {
        for name in [
            &b"a b,c:d\\e=f"[..],
            b"new\nline\t\"'",
            b"\xff\xfe",
            b"\\072,x",
        ] {
            let mut scene = Scene::new(user);
            let ws = scene.ws.with_file_name(OsStr::from_bytes(name));
            fs::rename(&scene.ws, &ws).unwrap();
            scene.ws = ws;
            scene.layer.push(OsStr::from_bytes(name));
            fs::create_dir(&scene.layer).unwrap();
            scene.hand_over();
            check_in(
                &scene,
                "echo x > new; rm one.txt; cat new; ls",
                "x\ndata.json\nlink-to-key\nnew\n",
            );
            assert!(scene.layer.join("upper/new").is_file(), "{name:?}");
        }
    }
}

#[test]
fn on_older_landlocks_it_does_as_much() {
    for user in users() {
        for abi in older([1, 2, 3, 4, 5]) {
            let scene = Scene::new(user).with_abi(abi);
            scene.hand_over();
            let line = "echo x > new; rm one.txt; mv new newer; mkdir d; cat newer; ls; echo x > ../out/new";
            let told = "x\nd\ndata.json\nlink-to-key\nnewer\nbash: line 1: ../out/new: Read-only file system\n";
            check_in(&scene, line, told);
        }
    }
}

/// Prepares a trial and returns the reason why it is refused.
fn refused(launcher: &Launcher, workspace: &Path, layer: &Path) -> SandboxRefusal {
    let level = Confinement::Trial {
        workspace: workspace.to_owned(),
        layer: layer.to_owned(),
        ignored: None,
        caches: None,
        places: co_exec::GrantedPlaces::default(),
    };
    let wrapped = launcher.wrap(
        level.level().unwrap(),
        vec!["ls".into()],
        &mut Vec::new(),
        workspace,
    );
    wrapped.expect_err("no trial should be possible")
}

#[test]
fn places_that_an_overlay_cannot_show_are_refused() {
    let scene = Scene::new(None);
    let told = |ws: &Path, layer: &Path| refused(&scene.launcher, ws, layer).to_string();
    let inside = scene.ws.join("layer");
    fs::create_dir(&inside).unwrap();
    assert!(told(&scene.ws, &inside).contains("are not apart"));
    assert!(told(&scene.ws, &scene.ws).contains("are not apart"));
    assert!(told(&scene.ws, scene.root()).contains("are not apart"));
    assert!(told(&scene.ws, &scene.out.join("none")).contains("cannot be used"));
    assert!(told(&scene.home, &scene.layer).contains("your home directory"));
    assert!(told(Path::new("/"), &scene.layer).contains("your home directory"));
    assert!(told(&scene.home.join(".local/state/co"), &scene.layer).contains("co's own files"));
    assert!(!inside.join("upper").exists() && !scene.layer.join("upper").exists());
}

#[test]
fn a_system_that_lacks_something_runs_no_trial_and_says_why() {
    let scene = Scene::new(None);
    let why = |change: fn(&mut SandboxSupport)| {
        let mut support = support().clone();
        change(&mut support);
        let launcher = Launcher::with_support(scene.exe(), scene.home.clone(), Vec::new(), support);
        let refused = refused(&launcher, &scene.ws, &scene.layer);
        assert_eq!(launcher.report().trials(&scene.ws), Err(refused.clone()));
        refused.to_string()
    };
    let told = why(|support| {
        support.trials = false;
        support.why_no_trials = Some("no overlay: Operation not permitted".to_owned());
    });
    assert!(
        told.contains("as trials here: no overlay: Operation not permitted"),
        "{told}"
    );
    assert!(why(|support| support.namespaces = false).contains("as trials"));
    assert!(why(|support| support.pid_namespaces = false).contains("as trials"));
    assert!(why(|support| support.abi = None).contains("cannot confine a command"));
    let told = refused(&scene.launcher, &scene.home, &scene.layer).to_string();
    assert!(
        told.contains("as trials here") && told.contains("is your home directory"),
        "{told}"
    );
    let scene = scene.without_namespaces();
    let told = refused(&scene.launcher, &scene.ws, &scene.layer).to_string();
    assert!(told.contains("sandbox_namespaces is off"), "{told}");
}

#[test]
fn a_check_that_took_too_long_is_made_again() {
    let scene = Scene::new(None);
    let hurried = scene.launcher.clone().probe_limit(Duration::ZERO);
    let refused = hurried.report().trials(&scene.ws).unwrap_err().to_string();
    assert!(refused.contains("took too long"), "{refused}");
    scene.launcher.report().trials(&scene.ws).unwrap();
    // That result stays.
    hurried.report().trials(&scene.ws).unwrap();
}

#[test]
fn a_layer_serves_one_command_at_a_time() {
    let scene = Scene::new(None);
    let line = "echo one > new; read -r; cat new";
    let (mut command, wrapped) = scene.confined(&scene.trial(), &["bash", "-c", line]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let told = refused(&scene.launcher, &scene.ws, &scene.layer).to_string();
    assert!(told.contains("another trial writes to"), "{told}");
    let layer = scene.root().join("layer2");
    fs::create_dir(&layer).unwrap();
    let other = Confinement::Trial {
        workspace: scene.ws.clone(),
        layer,
        ignored: None,
        caches: None,
        places: co_exec::GrantedPlaces::default(),
    };
    let done = scene.bash(&other, "cat new; echo two > new; cat new");
    assert_eq!(stdout(&done), "two\n", "{done:?}");
    drop(child.stdin.take());
    let mut told = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut told)
        .unwrap();
    child.wait().unwrap();
    assert_eq!(told, "one\n");
    drop(wrapped);
    check_in(&scene, "cat new", "one\n");
}

#[test]
fn secrets_are_looked_for_before_a_trial() {
    let scene = Scene::new(None);
    let many: Vec<PathBuf> = (0..10_001)
        .map(|n| scene.ws.join(format!("{n}.pem")))
        .collect();
    for path in many {
        fs::write(path, "").unwrap();
    }
    let told = refused(&scene.launcher, &scene.ws, &scene.layer);
    let SandboxRefusal::Unready(HidingRefusal::TooManyRules { rules, .. }) = told else {
        panic!("{told}");
    };
    assert_eq!(rules, 10_001);
}

#[test]
fn processes_share_memory_that_nobody_else_sees() {
    let name = format!("/dev/shm/co-test-trial-{}", std::process::id());
    for user in users() {
        let scene = Scene::new(user);
        scene.hand_over();
        let line = format!(
            "ls -A /dev/shm; echo x > {name}; cat {name}; stat -fc %T /dev/shm; \
             {} -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [1, -2]))'",
            python()
        );
        check_in(&scene, &line, "x\ntmpfs\n[1, 2]\n");
        assert!(!fs::exists(&name).unwrap());
    }
}

#[test]
fn tools_build_and_test_as_in_the_workspace() {
    let scene = Scene::new(None);
    fs::create_dir(scene.ws.join("src")).unwrap();
    let manifest =
        "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    fs::write(scene.ws.join("Cargo.toml"), manifest).unwrap();
    let code = "#[test]\nfn serves() {\n    \
                let server = std::net::TcpListener::bind(\"localhost:0\").unwrap();\n    \
                std::net::TcpStream::connect(server.local_addr().unwrap()).unwrap();\n}\n";
    fs::write(scene.ws.join("src/lib.rs"), code).unwrap();
    let before = scene.snapshot();
    let test = "cargo test --offline 2>&1 | grep -E 'Compiling|test serves'";
    let done = scene.bash(&scene.trial(), test);
    let compiled = format!("   Compiling tiny v0.1.0 ({})\n", scene.ws.display());
    assert_eq!(
        stdout(&done),
        format!("{compiled}test serves ... ok\n"),
        "{done:?}"
    );
    let done = scene.bash(&scene.trial(), test);
    assert_eq!(stdout(&done), "test serves ... ok\n", "{done:?}");
    assert_eq!(scene.snapshot(), before);
}

#[test]
fn a_trial_sees_ignored_files_and_caches_and_writes_in_its_layer() {
    for user in users() {
        let scene = Scene::new(user);
        let [ignored, caches] = ["ignored", "caches"].map(|name| scene.root().join(name));
        fs::create_dir(&ignored).unwrap();
        fs::create_dir(&caches).unwrap();
        fs::write(scene.ws.join(".env"), "KEY=hunter2\n").unwrap();
        fs::write(ignored.join(".env"), "KEY=hunter2\n").unwrap();
        fs::write(ignored.join("one.txt"), "ignored\n").unwrap();
        scene.hand_over();
        let level = Confinement::Trial {
            workspace: scene.ws.clone(),
            layer: scene.layer.clone(),
            ignored: Some(ignored.clone()),
            caches: Some(caches.clone()),
            places: co_exec::GrantedPlaces::default(),
        };
        let line = "mkdir $GOCACHE; echo built > $GOCACHE/a; cat one.txt .env; echo more >> one.txt; cat one.txt; read -r";
        let (mut command, wrapped) = scene.confined(&level, &["bash", "-c", line]);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.stderr(Stdio::null()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        for expected in ["ignored", "ignored", "more"] {
            assert_eq!(output.next().unwrap().unwrap(), expected);
        }
        // The launcher holds the lock, so it does not matter whether this process lives.
        let dir = fs::File::open(&ignored).unwrap();
        assert!(dir.try_lock().is_err());
        dir.lock_shared().unwrap();
        dir.unlock().unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
        dir.lock().unwrap();
        let text = fs::read_to_string(ignored.join("one.txt")).unwrap();
        assert_eq!(text, "ignored\n");
        let text = fs::read_to_string(scene.layer.join("caches/go-build/a")).unwrap();
        assert_eq!(text, "built\n");
        assert_eq!(caches.read_dir().unwrap().count(), 0);
        drop(wrapped);
    }
}
