//! The differences between an overlay and the workspace, the file systems on which it works, and the secrets below it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::{Command, Output};

use super::hostile::python;
use super::scene::{SOMEBODY, Scene, am_root, stdout};
use super::trial::{check_in, users};
use crate::support::mounted::Mounted;

#[test]
fn a_directory_of_the_workspace_moves_only_as_a_copy() {
    for user in users() {
        let scene = Scene::new(user);
        fs::create_dir_all(scene.ws.join("dir/deep")).unwrap();
        fs::write(scene.ws.join("dir/deep/file"), "deep\n").unwrap();
        scene.hand_over();
        let rename = "python3 -c 'import os; os.rename(\"dir\", \"other\")' 2>&1 | tail -1";
        check_in(
            &scene,
            rename,
            "OSError: [Errno 18] Invalid cross-device link: 'dir' -> 'other'\n",
        );
        let line =
            "mv dir other; cat other/deep/file; ls -d dir; mkdir new; mv new newer; ls -d newer";
        check_in(
            &scene,
            line,
            "deep\nls: cannot access 'dir': No such file or directory\nnewer\n",
        );
    }
}

#[test]
fn a_name_of_a_file_with_several_is_a_file_of_its_own_once_it_changes() {
    for user in users() {
        let scene = Scene::new(user);
        fs::hard_link(scene.ws.join("one.txt"), scene.ws.join("two.txt")).unwrap();
        scene.hand_over();
        let line = "cat two.txt | wc -l; echo more >> one.txt; cat one.txt | wc -l; cat two.txt | wc -l; \
                    ln one.txt three.txt; echo x > three.txt; cat one.txt; stat -c %h three.txt";
        check_in(&scene, line, "3\n4\n3\nx\n2\n");
    }
}

#[test]
fn owners_modes_and_attributes_are_as_in_the_workspace() {
    for user in users() {
        let scene = Scene::new(user);
        scene.hand_over();
        let lines = "import os\n\
            def attempt(name, action):\n    \
            try: print(name, action())\n    \
            except OSError as error: print(name, error.strerror)\n\
            attempt('own', lambda: os.chown('one.txt', os.getuid(), os.getgid()))\n\
            try: os.chown('one.txt', 12345, 12345)\n\
            except OSError: print('other not permitted')\n\
            attempt('setuid', lambda: os.chmod('one.txt', 0o4755))\n\
            attempt('setgid', lambda: os.chmod('one.txt', 0o2755))\n\
            attempt('set', lambda: os.setxattr('one.txt', 'user.x', b'1'))\n\
            attempt('get', lambda: os.getxattr('one.txt', 'user.x'))\n\
            attempt('trusted', lambda: os.setxattr('one.txt', 'trusted.x', b'1'))\n\
            attempt('device', lambda: os.mknod('device', 0o20600, os.makedev(1, 3)))\n\
            attempt('whiteout', lambda: os.mknod('data.json', 0o20000, 0))\n\
            attempt('new whiteout', lambda: os.mknod('white', 0o20000, 0))\n\
            attempt('pipe', lambda: os.mkfifo('pipe'))\n";
        let before = scene.snapshot();
        let done = scene.run(&scene.trial(), &[python(), "-c", lines]);
        let told = "own None\nother not permitted\nsetuid Operation not permitted\nsetgid None\nset None\nget b'1'\n\
                    trusted Operation not permitted\ndevice Permission denied\nwhiteout File exists\n\
                    new whiteout Permission denied\npipe None\n";
        assert_eq!(stdout(&done), told, "{done:?}");
        assert_eq!(scene.snapshot(), before);
    }
}

/// Such an attribute could show a secret of the workspace at another path, where no mount hides it.
#[test]
fn a_command_sets_no_attribute_of_the_overlay_itself() {
    let set = "import os\n\
        for name, value in ('opaque', b'y'), ('redirect', b'/.env'), ('metacopy', b''), ('whiteout', b'y'):\n    \
        for path in '.', 'dir', 'new':\n        \
        try: os.setxattr(path, 'user.overlay.' + name, value)\n        \
        except OSError: pass\n";
    for user in users() {
        let scene = Scene::new(user);
        fs::create_dir(scene.ws.join("dir")).unwrap();
        fs::write(scene.ws.join("dir/file"), "").unwrap();
        fs::write(scene.ws.join(".env"), "hunter2\n").unwrap();
        scene.hand_over();
        let line = format!("mkdir new; {} -c \"{set}\"; ls dir new", python());
        check_in(&scene, &line, "dir:\nfile\n\nnew:\n");
        for path in ["", "dir", "new"] {
            for name in ["redirect", "metacopy", "whiteout"] {
                let path = scene.layer.join("upper").join(path);
                let read = rustix::fs::getxattr(&path, format!("user.overlay.{name}"), &mut [0; 8]);
                assert_eq!(read, Err(rustix::io::Errno::NODATA), "{name} of {path:?}");
            }
        }
        // The next trial, whose kernel would read them.
        check_in(
            &scene,
            "ls dir new; cat new/* dir/* 2>&1 | grep -c hunter2",
            "dir:\nfile\n\nnew:\n0\n",
        );
    }
}

#[test]
fn a_file_of_another_group_changes_only_for_root() {
    if !am_root() {
        return;
    }
    let changes = "echo two >> shared; tail -1 shared; mv shared moved; rm -f moved shared; ls";
    let [changed, left] = ["two\n", "data.json\nlink-to-key\none.txt\n"];
    let refused = "bash: line 1: shared: Value too large for defined data type\none\n\
                   mv: cannot move 'shared' to 'moved': Value too large for defined data type\n";
    for (user, told) in [(None, changed), (Some(SOMEBODY), refused)] {
        let scene = Scene::new(user);
        scene.hand_over();
        let shared = scene.ws.join("shared");
        fs::write(&shared, "one\n").unwrap();
        chown(&shared, user, Some(12_345)).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o660)).unwrap();
        check_in(&scene, changes, &format!("{told}{left}"));
    }
}

#[test]
fn a_linked_work_tree_is_looked_at_and_not_committed() {
    let mut scene = Scene::new(None);
    let tree = scene.root().join("tree");
    let added = scene
        .plain("git")
        .args(["worktree", "add", "-q"])
        .arg(&tree)
        .output()
        .unwrap();
    assert!(added.status.success(), "{added:?}");
    scene.ws = tree;
    let line =
        "echo x > new; git status --short; git add new 2>&1 | grep -c 'Read-only file system'";
    check_in(&scene, line, "?? new\n1\n");
}

/// Runs a line in a trial, after `mount` in a mount namespace of its own.
fn after_mount(scene: &Scene, mount: &str, line: &str) -> Output {
    let (command, _wrapped) = scene.confined(&scene.trial(), &["bash", "-c", line]);
    let mut mounted = scene.plain("unshare");
    mounted.args([if am_root() { "-m" } else { "-rm" }, "bash", "-ec"]);
    mounted.arg(format!("{mount}\nexec \"$@\"")).arg("bash");
    mounted.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        mounted.env(name, value.unwrap_or_default());
    }
    mounted.output().unwrap()
}

#[test]
fn the_workspace_may_be_on_a_file_system_of_its_own() {
    let line = "cat file; echo b >> file; rm -r dir; mkdir dir; cat file; ls; ls dir";
    let make = "echo a > file; mkdir dir; echo x > dir/old";
    let tmpfs = format!("mount -t tmpfs co $PWD; cd $PWD; {make}");
    let overlay = format!(
        "mount -t tmpfs co ../out; mkdir ../out/{{up,work}}; \
         mount -t overlay -o lowerdir=$PWD,upperdir=../out/up,workdir=../out/work co $PWD; cd $PWD; rm -r *; {make}"
    );
    for mount in [tmpfs, overlay] {
        let scene = Scene::new(None);
        let before = scene.snapshot();
        let done = after_mount(&scene, &mount, line);
        assert_eq!(stdout(&done), "a\na\nb\ndir\nfile\n", "{mount}: {done:?}");
        assert_eq!(scene.snapshot(), before, "{mount}");
        assert_eq!(
            fs::read_to_string(scene.layer.join("upper/file")).unwrap(),
            "a\nb\n"
        );
    }
}

#[test]
fn a_layer_on_a_file_system_without_overlays_starts_nothing() {
    let scene = Scene::new(None);
    let mount = "mount -t tmpfs co ../out; mkdir ../out/{up,work}; \
                 mount -t overlay -o lowerdir=../layer,upperdir=../out/up,workdir=../out/work co ../layer";
    let done = after_mount(&scene, mount, "echo started");
    assert_eq!(
        (done.status.code(), stdout(&done).as_str()),
        (Some(126), ""),
        "{done:?}"
    );
    let why = String::from_utf8_lossy(&done.stderr);
    assert!(
        why.contains("could not be confined")
            && why.contains("an overlay over the file system of "),
        "{why}"
    );
    assert_eq!(why.lines().count(), 1, "{why}");
}

#[test]
fn a_workspace_with_a_file_system_below_it_is_refused() {
    if !am_root() {
        return;
    }
    let scene = Scene::new(None);
    let below = scene.ws.join("a b\nc\\");
    fs::create_dir(&below).unwrap();
    let mounted = Mounted::new(&below);
    let mut env = Vec::new();
    let level = scene.trial();
    let refused = scene.launcher.wrap(
        level.level().unwrap(),
        vec!["ls".into()],
        &mut env,
        &scene.ws,
    );
    let refused = refused.unwrap_err().to_string();
    let told = format!("a file system is mounted at {}, and", below.display());
    assert!(refused.starts_with(&told), "{refused}");
    drop(mounted);
    check_in(&scene, "ls", "a b\nc\\\ndata.json\nlink-to-key\none.txt\n");
}

#[test]
fn a_secret_stays_hidden_whatever_is_done_with_its_name() {
    for user in users() {
        let scene = Scene::new(user);
        let secrets = [".env", "app/.env", "app/deep/key.pem"];
        for name in secrets {
            fs::create_dir_all(scene.ws.join(name).parent().unwrap()).unwrap();
            fs::write(scene.ws.join(name), "hunter2\n").unwrap();
        }
        scene.hand_over();
        let tries = "cp -r app copy; mv app moved; mv .env shown; ln .env linked; cp -a .env copied; \
                     cp --reflink=always .env copied; chmod 777 .env app/.env; echo x >> .env; : > .env; \
                     rm -rf app; rm -f .env; ln -s app link; tar -cf all.tar .; git add -f .env app; git stash -u; \
                     dd if=.env of=dd; cat .env > cat; install .env app/.env installed";
        let before = scene.snapshot();
        let done = scene.bash(
            &scene.trial(),
            &format!("{tries}; grep -rc hunter2 . $TMPDIR | grep -v ':0$'"),
        );
        assert_eq!(stdout(&done), "", "{done:?}");
        assert_eq!(scene.snapshot(), before);
        let grep = Command::new("grep")
            .args(["-rl", "hunter2"])
            .arg(scene.layer.join("upper"))
            .output();
        assert_eq!(stdout(&grep.unwrap()), "");
        // What another program puts in its place is hidden too, and the next trial hides all again.
        let told = scene.after(&scene.trial(), "{ cat .env app/.env; } 2>&1", || {
            for name in [".env", "app/.env"] {
                fs::write(scene.ws.join("new"), "hunter2\n").unwrap();
                fs::rename(scene.ws.join("new"), scene.ws.join(name)).unwrap();
                scene.hand_over_one(&scene.ws.join(name));
            }
        });
        assert_eq!(
            told,
            "cat: .env: Permission denied\ncat: app/.env: Permission denied\n"
        );
        let done = scene.bash(&scene.trial(), "grep -rl hunter2 . $TMPDIR");
        assert_eq!(stdout(&done), "", "{done:?}");
    }
}

#[test]
fn a_file_that_the_person_saves_meanwhile_stays_in_the_workspace() {
    let scene = Scene::new(None);
    let one = scene.ws.join("one.txt");
    let told = scene.after(
        &scene.trial(),
        "{ echo theirs > one.txt; cat one.txt; } 2>&1",
        || {
            fs::write(&one, "mine\n").unwrap();
        },
    );
    assert_eq!(told, "theirs\n");
    assert_eq!(fs::read_to_string(&one).unwrap(), "mine\n");
    assert_eq!(one.metadata().unwrap().nlink(), 1);
}
