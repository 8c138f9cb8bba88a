//! Machines and places that forbid trials.

use std::fs;

use super::state::may_mount;
use super::trial_scene::{Scene, text};
use crate::support::BACKEND;

/// Checks the sentence of a trial that is refused, the same sentence of the doctor, and that the command did not run. The shell
/// commands `before` make trials impossible.
#[track_caller]
fn check(before: &str, expected: impl Fn(&Scene) -> String) {
    let scene = Scene::new("echo one > a");
    fs::create_dir_all(scene.state()).unwrap();
    let lines =
        "$CO exec --try --keep 'echo two > a'; echo $?; cat a; $CO doctor | grep '^warn  trials:'";
    let mut command = scene.command("unshare");
    let done = command
        .args(["--map-root-user", "--mount", "bash", "-c"])
        .arg(format!("({before}) && exec 2>&1 && cd $PWD && {lines}"))
        .env("STATE", scene.state())
        .env("CO", BACKEND)
        .output()
        .unwrap();
    let told = format!("commands cannot run as trials here: {}", expected(&scene));
    assert_eq!(
        text(&done.stdout),
        format!("co-nvim: {told}\n125\none\nwarn  trials: {told}\n"),
        "{before}: {done:?}"
    );
}

#[test]
fn the_setting_or_the_place_that_forbids_trials_is_named() {
    if !may_mount() {
        return;
    }
    check("echo 0 > /proc/sys/user/max_mnt_namespaces", |_| {
        "user.max_mnt_namespaces is 0: set it to 10000 with sysctl".to_owned()
    });
    let overlay = |dir: &str, at: &str| {
        format!(
            "mkdir -p {at}/{dir}/up {at}/{dir}/work && \
             mount -t overlay -o userxattr,lowerdir=$PWD,upperdir={at}/{dir}/up,workdir={at}/{dir}/work none $PWD && cd $PWD"
        )
    };
    let tmpfs = "mkdir $HOME/tmp && mount -t tmpfs none $HOME/tmp";
    let state = format!("{tmpfs} && cd $STATE && {}", overlay("one", "$HOME/tmp"));
    check(&state, |scene| {
        format!(
            "the file system of {} refuses to take the changes of an overlay, as NFS and overlays do (Invalid argument (os error 22)): \
             set XDG_STATE_HOME to a directory on another file system",
            scene.state().display()
        )
    });
    // The kernel refuses a third overlay, as it refuses one over a directory that ignores case.
    let two = [overlay("one", "$HOME/tmp"), overlay("two", "$HOME/tmp")].join(" && ");
    check(&format!("{tmpfs} && {two}"), |scene| {
        format!(
            "an overlay over the file system of {} is refused (Invalid argument (os error 22)): work in a directory on another file system",
            scene.workspace.display()
        )
    });
}
