//! Explains to a person which settings and directories forbid trials.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{IFlags, Mode, OFlags};
use rustix::io::Errno;

use super::plan::Overlay;

/// The kinds of namespaces that a trial needs, as the kernel names them in its limits.
const NAMESPACES: [&str; 5] = ["user", "mnt", "pid", "net", "ipc"];

/// The flag of a directory with case-insensitive names.
const CASEFOLD: IFlags = IFlags::from_bits_retain(0x4000_0000);

/// Returns the reason why the kernel refuses namespaces or mounts, and the next step for the person.
pub(super) fn of_namespaces(error: &io::Error) -> String {
    let is_root = rustix::process::geteuid().is_root();
    let known = known(|path| fs::read_to_string(path).ok(), is_root);
    known.unwrap_or_else(|| format!("namespaces or mounts are refused: {error}"))
}

/// Returns the setting that forbids namespaces, and the next step for the person. Returns `None` if no known setting forbids
/// them.
fn known(read: impl Fn(&str) -> Option<String>, is_root: bool) -> Option<String> {
    let has = |path: &str, value: &str| read(path).is_some_and(|it| it.trim() == value);
    // Root needs no user namespace.
    for kind in NAMESPACES.into_iter().skip(usize::from(is_root)) {
        let setting = format!("user.max_{kind}_namespaces");
        if has(&format!("/proc/sys/{}", setting.replace('.', "/")), "0") {
            return Some(format!("{setting} is 0: set it to 10000 with sysctl"));
        }
    }
    if !is_root && has("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return Some("kernel.unprivileged_userns_clone is 0: set it to 1 with sysctl".to_owned());
    }
    let is_container = ["/.dockerenv", "/run/.containerenv"]
        .iter()
        .any(|path| read(path).is_some());
    let status = read("/proc/self/status").unwrap_or_default();
    if is_container || status.lines().any(|line| line == "Seccomp:\t2") {
        return Some(
            "a container or another filter of system calls forbids namespaces or mounts: start the container with --security-opt seccomp=unconfined \
             --security-opt apparmor=unconfined"
                .to_owned(),
        );
    }
    let restricted = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
    (!is_root && has(restricted, "1")).then(|| {
        "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1): give co-nvim the profile of \
         :help co-apparmor, or set this setting to 0 with sysctl"
            .to_owned()
    })
}

/// Returns the reason why the kernel refuses an overlay, and the next step for the person.
pub(super) fn of_overlay(error: &io::Error, overlay: &Overlay) -> String {
    let (workspace, upper) = (&overlay.at.0, &overlay.upper.0);
    let dir = upper.parent().unwrap_or(upper);
    match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::ACCESS) => of_namespaces(error),
        Some(Errno::NODEV) => {
            "the kernel has no overlay file system: load its module overlay".to_owned()
        }
        // The probe mounts this overlay over a directory of our own.
        _ if workspace.starts_with(dir) => format!(
            "the file system of {} refuses to take the changes of an overlay, as NFS and overlays do ({error}): set XDG_STATE_HOME to a \
             directory on another file system",
            dir.parent().unwrap_or(dir).display()
        ),
        _ if ignores_case(workspace) => format!(
            "{} ignores case in names, and an overlay over such a directory is refused: work in another directory",
            workspace.display()
        ),
        _ => format!(
            "an overlay over the file system of {} is refused ({error}): work in a directory on another file system",
            workspace.display()
        ),
    }
}

fn ignores_case(dir: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(dir, flags, Mode::empty());
    let flags = opened.and_then(|dir| rustix::fs::ioctl_getflags(dir.as_fd()));
    flags.is_ok_and(|flags| flags.contains(CASEFOLD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], is_root: bool, expected: Option<&str>) {
        let read = |path: &str| {
            let mut found = files.iter().filter(|(name, _)| *name == path);
            found.next().map(|(_, text)| (*text).to_owned())
        };
        let told = known(read, is_root);
        match (&told, expected) {
            (None, None) => {}
            (Some(told), Some(expected)) if told.starts_with(expected) => {}
            _ => panic!("{files:?}: {told:?}"),
        }
    }

    #[test]
    fn the_setting_that_forbids_namespaces_is_named() {
        let user = ("/proc/sys/user/max_user_namespaces", "0\n");
        let clone = ("/proc/sys/kernel/unprivileged_userns_clone", "0\n");
        let apparmor = (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1\n",
        );
        let filter = ("/proc/self/status", "Name:\tco\nSeccomp:\t2\n");
        check(&[user], false, Some("user.max_user_namespaces is 0: "));
        check(
            &[("/proc/sys/user/max_net_namespaces", "0\n")],
            true,
            Some("user.max_net_namespaces is 0: "),
        );
        check(
            &[clone],
            false,
            Some("kernel.unprivileged_userns_clone is 0: "),
        );
        check(
            &[apparmor],
            false,
            Some("AppArmor restricts user namespaces"),
        );
        check(&[user, clone, apparmor], true, None);
        let container = Some("a container or another filter of system calls forbids");
        check(&[filter, apparmor], false, container);
        check(&[("/.dockerenv", "")], true, container);
        let usual = [
            ("/proc/sys/user/max_user_namespaces", "31195\n"),
            ("/proc/sys/kernel/unprivileged_userns_clone", "1\n"),
            (
                "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
                "0\n",
            ),
            ("/proc/self/status", "Seccomp:\t0\nSeccomp_filters:\t2\n"),
        ];
        check(&usual, false, None);
    }

    #[test]
    fn the_place_that_refuses_an_overlay_is_named() {
        let told = |at: &str, errno: Errno| {
            let overlay =
                super::super::layer::overlay(Path::new(at), Path::new("/state/co/try"), None);
            of_overlay(&errno.into(), &overlay)
        };
        let invalid = Errno::INVAL;
        assert!(
            told("/state/co/try/workspace", invalid)
                .starts_with("the file system of /state/co refuses")
        );
        assert!(
            told("/work", invalid).starts_with(
                "an overlay over the file system of /work is refused (Invalid argument"
            )
        );
        assert!(told("/work", Errno::NODEV).starts_with("the kernel has no overlay file system"));
    }
}
