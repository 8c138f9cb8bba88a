//! Trials of a real directory, in a real overlay.

mod ignored;
mod keep;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tempfile::TempDir;

use super::report::in_time;
use super::{Layer, TrialChanges};
use crate::checkpoint::{Change, Checkpoints, Entry};
use crate::workspace::files::PathFilter;
use co_exec::Confinement;
use co_exec::sandbox::Removals;
use co_exec::secrets::Surveys;

/// A workspace, and the layers of its trials.
pub(super) struct Scene {
    /// The directory above the workspace.
    pub(super) top: PathBuf,
    removals: Removals,
    checkpoints: Checkpoints,
    _dir: TempDir,
}

/// Mounts the overlay of the layer `$1` over the workspace `$0`, with the ignored files `$4` between them, as co-exec does, and
/// runs `$2` in it, by the program `$3`.
const MOUNT: &str = r#"mkdir -p -m "$(stat -c %a "$0")" "$1/upper" "$1/work"
mount -t overlay -o "userxattr,lowerdir=${4:+$4:}$0,upperdir=$1/upper,workdir=$1/work" overlay "$0" || exit 99
cd "$0" && exec $3 bash -ec "$2""#;

/// Makes the root of a user namespace an ordinary user.
const ORDINARY: &str = "setpriv --bounding-set=-all --inh-caps=-all";

impl Scene {
    /// Returns the scene of a workspace that a script makes.
    pub(super) fn new(script: &str) -> Self {
        let dir = TempDir::with_prefix("co-trial-").unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs::create_dir(top.join("work")).unwrap();
        let scene = Self {
            checkpoints: Checkpoints::new(top.join("checkpoints")),
            removals: Removals::default(),
            top,
            _dir: dir,
        };
        scene.run(script);
        scene
    }

    pub(super) fn root(&self) -> PathBuf {
        self.top.join("work")
    }

    pub(super) fn layer(&self) -> Layer {
        let layers = self.top.join("layers");
        let layer = Layer::new(&layers, &self.root(), None, &self.removals).unwrap();
        layer.with_survey(Surveys::default().current(&self.root()))
    }

    /// Runs a script in the workspace.
    pub(super) fn run(&self, script: &str) {
        let mut bash = Command::new("bash");
        let done = bash.args(["-ec", script]).current_dir(self.root());
        expect_success(&done.output().unwrap(), script);
    }

    /// Runs a script as a trial. Returns false if no overlay can be mounted here.
    pub(super) fn try_in(&self, layer: &Layer, script: &str) -> bool {
        if !*CAN_MOUNT {
            return false;
        }
        let mut unshare = Command::new("unshare");
        unshare.args(["-Urm", "bash", "-c", MOUNT]);
        let is_root = rustix::process::geteuid().is_root();
        let done = unshare.args([self.root(), layer.path()]);
        let done = done.args([script, if is_root { "" } else { ORDINARY }]);
        let Confinement::Trial { ignored, .. } = layer.confinement(&self.root()) else {
            panic!("no trial");
        };
        let done = done.args(ignored);
        expect_success(&done.output().unwrap(), script);
        true
    }

    pub(super) fn read(&self, layer: &Layer) -> TrialChanges {
        let is_allowed = is_allowed();
        let store = self.checkpoints.store().unwrap();
        TrialChanges::read(layer, &self.root(), &is_allowed, &store).unwrap()
    }
}

impl Drop for Scene {
    /// Waits for the last thread that writes to the directory, which can be removed after that.
    fn drop(&mut self) {
        wait_for(&self.removals);
    }
}

/// Returns a filter that leaves secrets out.
pub(super) fn is_allowed() -> PathFilter {
    Arc::new(|path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        !name.is_some_and(co_policy::secret_names::is_secret)
    })
}

/// Returns whether overlays can be mounted here.
static CAN_MOUNT: LazyLock<bool> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("lower")).unwrap();
    let mut unshare = Command::new("unshare");
    unshare.args(["-Urm", "bash", "-c", MOUNT]);
    let done = unshare.args([dir.path().join("lower"), dir.path().to_owned()]);
    done.arg("true")
        .status()
        .is_ok_and(|status| status.success())
});

fn expect_success(done: &Output, script: &str) {
    assert!(
        done.status.success(),
        "{script}\n{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
}

/// Returns the changes in lines.
fn lines(found: &TrialChanges) -> Vec<String> {
    let entry = |entry: &Option<Entry>| match entry {
        None => "-".to_owned(),
        Some(Entry::Dir { mode }) => format!("dir {mode:o}"),
        Some(Entry::File { mode, .. }) => format!("{mode:o}"),
        Some(Entry::Link { target }) => format!("=> {}", target.display()),
    };
    let change = |it: &Change| {
        let (before, after) = (entry(&it.before), entry(&it.after));
        format!("{}: {before} > {after}", it.path.display())
    };
    let mut lines: Vec<_> = found.changes.iter().map(change).collect();
    let not_kept = found.not_kept.iter();
    lines.extend(not_kept.map(|it| format!("{} stays: {}", it.path.display(), it.why)));
    if !found.git.is_empty() {
        lines.push(found.git.words());
    }
    if found.ignored.files > 0 {
        lines.push(format!(
            "{} ignored of {} bytes",
            found.ignored.files, found.ignored.bytes
        ));
    }
    lines
}

/// Compares the changes of a script in a workspace that another script made.
#[track_caller]
fn check(before: &str, script: &str, expected: &[&str]) {
    let scene = Scene::new(before);
    let layer = scene.layer();
    if scene.try_in(&layer, script) {
        assert_eq!(lines(&scene.read(&layer)), expected, "{script}");
        // Reading changes nothing.
        assert_eq!(lines(&scene.read(&layer)), expected, "{script}");
    }
}

#[test]
fn the_changes_of_a_trial_are_those_of_files_modes_and_links() {
    check("echo 1 > a", "true", &[]);
    check("echo 1 > a", "cat a", &[]);
    check(
        "echo 1 > a; umask 022",
        "echo 2 > a; echo 3 > b",
        &["a: 644 > 644", "b: - > 644"],
    );
    check(
        "echo 1 > a",
        "rm a; mkdir -p d/e",
        &["a: 644 > -", "d: - > dir 755", "d/e: - > dir 755"],
    );
    check("echo 1 > a", "chmod 755 a", &["a: 644 > 755"]);
    check(
        "mkdir d; touch d/a",
        "chmod 700 d",
        &["d: dir 755 > dir 700"],
    );
    check(
        "ln -s a b; touch c",
        "ln -sfn c b; ln -s /etc/hostname d",
        &["b: => a > => c", "d: - > => /etc/hostname"],
    );
    check("touch a b", "mv a c; mv c b", &["a: 644 > -"]);
    check(
        "echo 1 > a; mkdir d",
        "mv a d/b",
        &["a: 644 > -", "d/b: - > 644"],
    );
}

#[test]
fn what_was_copied_but_not_changed_is_no_change() {
    check(
        "echo 1 > a; mkdir d; echo 1 > d/b",
        "touch a; echo 1 > d/b; cp d/b d/c; rm d/c; chmod 700 a; chmod 644 a",
        &[],
    );
    check(
        "mkdir d; echo 1 > d/a; chmod 755 d/a",
        "rm -r d; mkdir d; echo 1 > d/a; chmod 755 d/a",
        &[],
    );
}

#[test]
fn everything_below_a_removed_directory_is_removed() {
    let made = "mkdir -p d/e; touch d/a d/e/b; ln -s a d/l";
    let removed = [
        "d/a: 644 > -",
        "d/e: dir 755 > -",
        "d/e/b: 644 > -",
        "d/l: => a > -",
    ];
    let whole = ["d: dir 755 > -"];
    check(made, "rm -r d", &[&whole[..], &removed].concat());
    check(
        made,
        "rm -r d; mkdir d; touch d/new",
        &[&removed[..], &["d/new: - > 644"]].concat(),
    );
    check(
        made,
        "rm -r d; echo 1 > d",
        &[&["d: dir 755 > 644"], &removed[..]].concat(),
    );
    check(
        made,
        "rm -r d; ln -s x d",
        &[&["d: dir 755 > => x"], &removed[..]].concat(),
    );
    check(
        "echo 1 > d",
        "rm d; mkdir d; echo 1 > d/a",
        &["d: 644 > dir 755", "d/a: - > 644"],
    );
    check(
        "ln -s x d; mkdir x",
        "rm d; mkdir d; echo 1 > d/a",
        &["d: => x > dir 755", "d/a: - > 644"],
    );
}

#[test]
fn ignored_files_are_counted_only() {
    check(
        "printf 'out\\n*.log\\n' > .gitignore; mkdir out; echo 1 > out/a; touch b.log",
        "echo 22 > out/a; echo 1 > out/b; rm b.log; mkdir new; echo 1 > new/c.log; echo 1 > new/d",
        &["new: - > dir 755", "new/d: - > 644", "4 ignored of 7 bytes"],
    );
    // A directory with ignored files stays.
    check(
        "echo '*.log' > .gitignore; mkdir d; touch d/a d/b.log",
        "rm -r d",
        &["d/a: 644 > -", "1 ignored of 0 bytes"],
    );
    check(
        "echo '*.log' > .gitignore; mkdir d; touch d/a d/b.log",
        "rm -r d; touch d",
        &[
            "d stays: files below it stay: they are ignored, or cannot be removed",
            "1 ignored of 0 bytes",
        ],
    );
}

#[test]
fn the_rules_before_a_trial_decide() {
    check(
        "echo 1 > a; mkdir d; echo 1 > d/a",
        "echo 'a' > .gitignore; echo 2 > a; echo 2 > d/a; mkdir e; echo 1 > e/a; rm d/a; echo '*' > e/.ignore",
        &[
            ".gitignore: - > 644",
            "a: 644 > 644",
            "d/a: 644 > -",
            "e: - > dir 755",
            "e/.ignore: - > 644",
            "e/a: - > 644",
        ],
    );
    check(
        "echo 'a' > .gitignore; echo 1 > a; mkdir d",
        "rm .gitignore; echo 2 > a; echo 1 > d/a",
        &[".gitignore: 644 > -", "2 ignored of 4 bytes"],
    );
    check(
        "mkdir src",
        "echo '*' > src/.gitignore; echo 1 > src/conftest.py; mkdir new; echo '*' > new/.gitignore; echo 1 > new/a",
        &[
            "new: - > dir 755",
            "new/.gitignore: - > 644",
            "new/a: - > 644",
            "src/.gitignore: - > 644",
            "src/conftest.py: - > 644",
        ],
    );
}

#[test]
fn a_file_of_rules_is_not_ignored() {
    // In an ignored directory, it has no effect.
    check(
        "printf '.gitignore\n.ignore\nout/\nlogs/*\n' > .gitignore; mkdir src logs out; touch out/.gitignore",
        "for dir in src logs out; do echo '*' > $dir/.gitignore; done; echo '*' > src/.ignore; echo 1 > logs/a; echo '!out' >> .gitignore",
        &[
            ".gitignore: 644 > 644",
            "logs/.gitignore: - > 644",
            "src/.gitignore: - > 644",
            "src/.ignore: - > 644",
            "2 ignored of 4 bytes",
        ],
    );
    check(
        "printf '.gitignore\n' > .gitignore; mkdir src; echo a > src/.gitignore",
        "rm src/.gitignore",
        &["src/.gitignore: 644 > -"],
    );
}

#[test]
fn co_reads_what_a_trial_changed_for_a_limited_time() {
    let scene = Scene::new("");
    for script in ["touch a", "mkdir out; touch out/a"] {
        let layer = scene.layer();
        if !scene.try_in(&layer, script) {
            return;
        }
        *layer.time_left.lock() = Duration::ZERO;
        let store = scene.checkpoints.store().unwrap();
        let read = TrialChanges::read(&layer, &scene.root(), &is_allowed(), &store);
        let why = read.unwrap_err().to_string();
        assert!(why.starts_with("co needs more than 10 s to read"), "{why}");
    }
}

#[test]
fn co_shows_what_a_trial_changed_for_a_limited_time() {
    let scene = Scene::new("");
    let layer = Arc::new(scene.layer());
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let shown = async {
        assert_eq!(in_time(&layer, || 1).await, Ok(1));
        *layer.time_left.lock() = Duration::from_millis(1);
        in_time(&layer, move || ended.recv().is_err()).await
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let why = runtime.block_on(shown).unwrap_err();
    assert!(
        why.starts_with("co needs more than 10 s to read and show"),
        "{why}"
    );
    drop(end);
}

#[test]
fn secrets_are_not_read() {
    let why = "it looks like a secret, or is a file of co's own";
    check(
        "echo 1 > .env; mkdir d; touch d/.env d/a",
        "echo 2 > .env; cp .env id_rsa; rm -r d; printf -- '-----BEGIN PRIVATE KEY-----\\n' > key",
        &[
            "d/a: 644 > -",
            &format!(".env stays: {why}"),
            &format!("d/.env stays: {why}"),
            &format!("id_rsa stays: {why}"),
            &format!("key stays: {why}"),
        ],
    );
    check(
        "touch .env",
        "ln -s .env a; printf 1 > .gitignore",
        &[".gitignore: - > 644", "a: - > => .env"],
    );
}

#[test]
fn what_cannot_be_kept_is_named() {
    check(
        "echo 1 > a; ln a b; echo 1 > c; mkfifo gone",
        "mkfifo pipe; echo 2 > a; ln c d; rm gone; chmod u+s c; truncate -s 17M large; touch $'\\xff' $'new\\nline'; \
         ln -s $'\\xff' l; mkdir $'\\xfe'; touch $'\\xfe'/a",
        &[
            "new\nline: - > 644",
            "a stays: it has several names (hard links)",
            "c stays: it has several names (hard links)",
            "d stays: it has several names (hard links)",
            "gone stays: it is a FIFO",
            "l stays: its target is not UTF-8",
            "large stays: it is larger than 16 MiB",
            "pipe stays: it is a FIFO",
            "\u{fffd} stays: its name is not UTF-8",
            "\u{fffd} stays: its name is not UTF-8",
        ],
    );
    check(
        "echo 1 > a; chmod 6755 a; echo 1 > b",
        "echo 2 > a; chmod 6755 a; chmod g+s b; mkdir d; chmod 3777 d",
        &[
            "a: 6755 > 6755",
            "d: - > dir 3777",
            "b stays: it has a new setuid or setgid bit",
        ],
    );
}

#[test]
fn closed_files_and_directories_are_read() {
    check(
        "mkdir d; echo 1 > d/a",
        "echo 2 > d/a; mkdir -p e/f; echo 1 > e/f/b; chmod 0 d/a e/f/b e/f; chmod 300 e; chmod 500 d",
        &[
            "d: dir 755 > dir 500",
            "d/a: 644 > 0",
            "e: - > dir 300",
            "e/f: - > dir 0",
            "e/f/b: - > 0",
        ],
    );
}

#[test]
fn changes_of_git_are_named_and_its_refresh_is_not() {
    let made =
        "git init -q; echo 1 > a; git add a; git -c user.name=a -c user.email=b commit -q -m 1";
    check(made, "touch a; git status; git diff; git log", &[]);
    check(made, "git tag new", &[".git/refs/tags/new changed"]);
    check(
        made,
        "git tag new; git config a.b c",
        &[".git/config, .git/refs/tags/new changed"],
    );
    check(
        made,
        "echo 2 > a; git add a",
        &["a: 644 > 644", ".git/index changed"],
    );
    check(made, "git rm -q --cached a", &[".git/index changed"]);
    check(made, "rm -r .git", &[".git changed"]);
    check(
        "",
        "git init -q; git init -q d; touch d/a",
        &[
            "d: - > dir 755",
            "d/a: - > 644",
            "new repositories: .git, d/.git",
        ],
    );
    check(
        "mkdir d; touch d/a; mkdir d/.git; touch d/.git/b",
        "rm -r d",
        &["d/a: 644 > -", "d/.git changed"],
    );
    check(
        "mkdir d; echo 'gitdir: x' > d/.git",
        "echo 'gitdir: y' > d/.git; mkdir .GIT",
        &["new repository: .GIT; d/.git changed"],
    );
}

#[test]
fn what_changes_in_the_workspace_meanwhile_is_a_conflict() {
    let scene = Scene::new(
        "for a in a b c d e f g h; do echo 1 > $a; done; mkdir gone moved; touch gone/a moved/a moved/b",
    );
    let layer = scene.layer();
    let script = "echo 2 > a; rm b; echo 2 > c; echo 2 > d; touch new; echo 2 > gone/a; echo 2 > moved/a; rm e; mv f f2; mkdir x; \
                  echo 2 > h2; mv h2 h; mkdir x/new; echo 2 > x/new/a";
    if !scene.try_in(&layer, script) {
        return;
    }
    scene.run("echo 3 > a; echo 3 > b; chmod 755 c; rm d; echo 3 > new; rm -r gone; mv moved x; ln -s . moved; rm e; touch g; rm h");
    let (changed, removed) = (
        "it changed in the workspace while the command ran",
        "it was removed from the workspace while the command ran",
    );
    assert_eq!(
        lines(&scene.read(&layer)),
        [
            "f: 644 > -",
            "f2: - > 644",
            "x/new: - > dir 755",
            "x/new/a: - > 644",
            &format!("a stays: {changed}"),
            &format!("b stays: {changed}"),
            &format!("c stays: {changed}"),
            &format!("d stays: {removed}"),
            &format!("gone stays: {removed}"),
            // The trial made another file of its name.
            &format!("h stays: {removed}"),
            &format!("moved stays: {changed}"),
            &format!("new stays: {changed}"),
        ]
    );
}

#[test]
fn what_changed_right_before_a_trial_is_no_conflict() {
    let scene = Scene::new("");
    for round in 0..20 {
        fs::write(scene.root().join("a"), format!("{round}")).unwrap();
        let layer = scene.layer();
        fs::create_dir(layer.upper()).unwrap();
        fs::write(layer.upper().join("a"), "changed").unwrap();
        assert_eq!(lines(&scene.read(&layer)), ["a: 644 > 644"]);
    }
}

#[test]
fn links_lead_nowhere() {
    let scene = Scene::new("mkdir d e; echo 1 > d/a; echo 1 > e/a");
    let outside = scene.top.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "outside").unwrap();
    let layer = scene.layer();
    fs::create_dir_all(layer.upper().join("d")).unwrap();
    fs::write(layer.upper().join("d/a"), "1").unwrap();
    symlink(&outside, layer.upper().join("e")).unwrap();
    fs::remove_dir_all(scene.root().join("d")).unwrap();
    symlink(&outside, scene.root().join("d")).unwrap();
    let link = format!("e: dir 755 > => {}", outside.display());
    let stays = "d stays: it changed in the workspace while the command ran";
    assert_eq!(lines(&scene.read(&layer)), [&link, "e/a: 644 > -", stays]);
}

#[test]
fn a_layer_is_private_and_removed_with_its_closed_directories() {
    let scene = Scene::new("");
    let layer = scene.layer();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&layer.path()), 0o700);
    // Nothing has run.
    assert_eq!(scene.read(&layer), TrialChanges::default());
    if !scene.try_in(&layer, "mkdir -p d/e; touch d/e/a; chmod 0 d/e d") {
        return;
    }
    let path = layer.path().parent().unwrap().to_owned();
    drop(layer);
    wait_for(&scene.removals);
    assert!(!path.exists());
}

/// Waits until all removals have ended.
fn wait_for(removals: &Removals) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let waited = removals.finished(std::time::Duration::from_secs(60));
    runtime.unwrap().block_on(waited);
}
