//! Tools on PATH work wherever they are installed, and nothing beside them can be read.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::scene::{Scene, stdout};

/// A scene with tools beside its home directory.
struct Tools {
    scene: Scene,
    top: PathBuf,
}

impl Tools {
    fn new() -> Self {
        let scene = Scene::new(None);
        let top = scene.home.parent().unwrap().to_owned();
        Self { scene, top }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.top.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.file(name, &format!("#!/bin/bash\n{text}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn link(&self, target: impl AsRef<Path>, name: &str) {
        let path = self.top.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    /// Checks what a line prints with these directories at the start of PATH, at both levels.
    #[track_caller]
    fn check(&mut self, dirs: &[&str], line: &str, expected: &str) {
        let old = std::env::var_os("PATH").unwrap();
        let dirs = dirs.iter().map(|dir| self.top.join(dir));
        let all: Vec<PathBuf> = dirs.chain(std::env::split_paths(&old)).collect();
        self.scene.path = std::env::join_paths(all).unwrap();
        for level in [self.scene.read_only(), self.scene.workspace()] {
            let done = self.scene.bash(&level, line);
            assert_eq!(stdout(&done), expected, "{level:?}: {done:?}");
        }
    }
}

/// A program that prints the file `data` beside the directory of its real path.
const READS: &str = "cat \"$(dirname \"$(readlink -f \"$0\")\")/../data\"";

#[test]
fn a_tool_of_linuxbrew_reads_its_cellar() {
    let mut tools = Tools::new();
    tools.program("brew/.linuxbrew/Cellar/x/1/bin/x", READS);
    tools.file("brew/.linuxbrew/Cellar/x/1/data", "cellar\n");
    tools.file("brew/token", "hunter2\n");
    tools.link("../Cellar/x/1/bin/x", "brew/.linuxbrew/bin/x");
    let line = "x; cat ../brew/token";
    tools.check(&["brew/.linuxbrew/bin"], line, "cellar\n");
}

#[test]
fn a_shim_of_another_users_pyenv_runs() {
    let mut tools = Tools::new();
    let root = tools.top.join("alice/.pyenv");
    let shim = format!("exec {}/libexec/pyenv exec python7", root.display());
    tools.program("alice/.pyenv/shims/python7", &shim);
    let pyenv = format!("shift; exec {}/versions/7/bin/$1", root.display());
    tools.program("alice/.pyenv/libexec/pyenv", &pyenv);
    tools.program("alice/.pyenv/versions/7/bin/python7", READS);
    tools.file("alice/.pyenv/versions/7/data", "seven\n");
    tools.file("alice/.pyenv/token", "hunter2\n");
    let line = "python7; cat ../alice/.pyenv/token";
    tools.check(&["alice/.pyenv/shims"], line, "seven\n");
}

#[test]
fn only_the_tools_on_path_can_be_read_in_a_directory_of_many() {
    let mut tools = Tools::new();
    tools.program("opt/tool/bin/a", READS);
    tools.file("opt/tool/data", "a\n");
    tools.file("opt/service/token", "hunter2\n");
    tools.file("opt/vendor/app/data", "b\n");
    tools.program("opt/vendor/app/lib/b", READS);
    let beside = "cat \"$(dirname \"$(readlink -f \"$0\")\")/data\"";
    tools.program("opt/beside/c", beside);
    tools.file("opt/beside/data", "c\n");
    tools.link("../../vendor/app/lib/b", "opt/tool/bin/b");
    tools.link(tools.top.join("opt/beside/c"), "opt/tool/bin/c");
    let line = "a; b; c; cat ../opt/service/token";
    // The link of `b` leads to a directory that is no `bin`, so its root stays closed.
    tools.check(&["opt/tool/bin"], line, "a\nc\n");
}

#[test]
fn no_root_holds_a_home_or_what_is_hidden_in_one() {
    let mut tools = Tools::new();
    for (dir, name) in [
        ("bin", "one"),
        ("home/bin", "two"),
        ("home/.local/bin", "three"),
        ("home/.tool/bin", "four"),
        ("home/node/bin", "five"),
    ] {
        tools.program(&format!("{dir}/{name}"), &format!("echo {name}"));
        tools.file(&format!("{dir}/../token-{name}"), "hunter2\n");
    }
    tools.file("home/node/lib/data", "node\n");
    let home = tools.scene.home.display().to_string();
    let line = format!(
        "one; two; three; four; five; cat {home}/node/lib/data; \
         cat {home}/../token-one {home}/token-two {home}/.local/token-three {home}/.tool/token-four"
    );
    let dirs = [
        "bin",
        "home/bin",
        "home/.local/bin",
        "home/.tool/bin",
        "home/node/bin",
    ];
    tools.check(&dirs, &line, "one\ntwo\nthree\nfour\nfive\nnode\n");
    // Not below a dot-directory, and not the home itself.
    let line = format!("cat {home}/.tool/token-four {home}/token-two");
    tools.check(&["home/.tool", "home", "."], &line, "");
}

#[test]
fn a_directory_above_the_workspace_is_no_tool() {
    let mut tools = Tools::new();
    tools.file("work/other/secret", "hunter2\n");
    tools.program("work/bin/one", "echo one");
    tools.scene.ws = tools.top.join("work/ws");
    fs::create_dir(&tools.scene.ws).unwrap();
    let line = "one; cat ../other/secret";
    tools.check(&["work/bin"], line, "one\n");
}

#[test]
fn configuration_with_a_credential_is_closed() {
    let mut tools = Tools::new();
    let config = "[net]\noffline = true\n";
    tools.file("home/.cargo/config.toml", config);
    tools.file("home/.config/go/env", "GOFLAGS=-mod=mod\n");
    let home = tools.scene.home.display().to_string();
    let cat = format!("cat {home}/.cargo/config.toml {home}/.config/go/env; git config user.name");
    tools.check(&[], &cat, &format!("{config}GOFLAGS=-mod=mod\nA\n"));
    let token = "[registry]\ntoken = \"cioAbCdEfGhIjKlMn\"\n";
    tools.file("home/.cargo/config.toml", token);
    let proxy = "GOPROXY=https://me:hunter2hunter2@example.org\n";
    tools.file("home/.config/go/env", proxy);
    tools.check(&[], &cat, "A\n");
    let git =
        "[user]\n\tname = A\n[url \"https://me:hunter2hunter2@example.org/\"]\n\tinsteadOf = x:\n";
    tools.file("home/.gitconfig", git);
    let line = format!("cat {home}/.gitconfig; git log --format=%s");
    tools.check(&[], &line, "first\n");
}

#[test]
fn read_roots_add_places_and_no_home() {
    let mut tools = Tools::new();
    tools.file("sources/dep/lib.c", "dep\n");
    tools.file("home/src/lib.c", "own\n");
    tools.file("home/notes", "hunter2\n");
    let line = "cat ../sources/dep/lib.c ../home/src/lib.c ../home/notes";
    tools.check(&[], line, "");
    let roots = [
        tools.top.join("sources"),
        "~/src".into(),
        "~/".into(),
        tools.top.clone(),
    ];
    tools.scene.launcher = tools.scene.launcher.clone().read_roots(roots.into());
    tools.check(&[], line, "dep\nown\n");
}
