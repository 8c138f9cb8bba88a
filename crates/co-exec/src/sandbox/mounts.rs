//! Sets up the mount namespace of a command: only certain directories are writable, some paths in them are protected, secrets
//! cannot be opened, and an overlay may redirect the changes of a directory.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::libc;
use nix::sched::CloneFlags;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, StatVfsMountFlags, StatxAttributes, StatxFlags, statx,
};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, unmount,
};

use crate::beneath;

use super::plan::{HiddenPaths, Mounts, Overlay, PathBytes};
use super::restriction;

/// The reason why a path could not be protected from the command.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProtectError {
    #[error("{} was moved or replaced before it could be protected", .0.display())]
    Moved(PathBuf),
    #[error("secrets and what runs later cannot be protected ({0})")]
    System(#[from] io::Error),
}

impl From<Errno> for ProtectError {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

/// Enters a new mount namespace and makes it read-only, except for the writable paths in `mounts`. Also enters the namespaces
/// `others`; a PID namespace applies only to the next child of this process. Does not protect files in writable paths; see
/// [`hold`] and [`hide`].
///
/// # Errors
/// The kernel or its settings refuse a step. If the kernel refuses an overlay, the error is a sentence for a person. Otherwise,
/// it is the error of the system.
pub(super) fn enter(mounts: &Mounts, others: CloneFlags) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS | others)?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    let replaced = mounts.replaced.iter().map(|dir| place(&dir.by.0));
    let replaced = replaced.collect::<io::Result<Vec<_>>>()?;
    // An overlay may cover them.
    let places = mounts.writable.iter().map(|path| place(&path.0));
    let places = places.collect::<io::Result<Vec<_>>>()?;
    for overlay in &mounts.overlays {
        mount_overlay(overlay)
            .map_err(|error| io::Error::other(restriction::of_overlay(&error, overlay)))?;
    }
    let downloads = mounts.downloads.iter();
    let downloads = downloads.map(|it| &it.overlay);
    let downloads: Vec<_> = downloads.filter(|it| mount_overlay(it).is_ok()).collect();
    for (path, place) in mounts.writable.iter().zip(&places) {
        mount_bind_recursive(by_descriptor(place), &path.0)?;
    }
    for (dir, by) in mounts.replaced.iter().zip(&replaced) {
        mount_bind_recursive(by_descriptor(by), &dir.at.0)?;
    }
    set(Path::new("/"), libc::MOUNT_ATTR_RDONLY, MountScope::Below)?;
    let overlays = mounts.overlays.iter().chain(downloads);
    let overlays = overlays.map(|overlay| &overlay.at);
    let others = overlays.chain(mounts.replaced.iter().map(|dir| &dir.at));
    for path in mounts.writable.iter().chain(others) {
        clear_read_only(&path.0)?;
    }
    if let Some(dir) = &mounts.memory {
        let bounds = format!("mode=0700,size={},nr_inodes={}", dir.bytes, dir.files);
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("co", &dir.path.0, "tmpfs", flags, &*CString::new(bounds)?)?;
    }
    Ok(())
}

/// Returns the directories of toolchains that have an overlay, so that the command may write in them.
pub(super) fn writable_downloads(mounts: &Mounts) -> impl Iterator<Item = &PathBytes> {
    let mounted = mounts.downloads.iter().filter(|it| {
        let at = place(&it.overlay.at.0);
        let flags = at.and_then(|at| Ok(rustix::fs::fstatvfs(at)?.f_flag));
        flags.is_ok_and(|flags| !flags.contains(StatVfsMountFlags::RDONLY))
    });
    mounted.flat_map(|it| &it.places)
}

/// Bind-mounts each pinned or held path on itself, and makes held paths read-only.
///
/// # Errors
/// The system refuses; or another program has moved a path, or has replaced a component by a symbolic link. Then the path may
/// later come back unprotected.
pub(super) fn hold(mounts: &Mounts) -> Result<(), ProtectError> {
    for path in mounts.pinned.iter().chain(&mounts.held) {
        bind(&path.0)?;
    }
    for path in &mounts.held {
        // The system refuses if another file is there now.
        let done = set(&path.0, libc::MOUNT_ATTR_RDONLY, MountScope::Here);
        done.map_err(|_| ProtectError::Moved(path.0.clone()))?;
    }
    let is_mounted = |place: &OwnedFd| {
        let facts = statx(place, "", AtFlags::EMPTY_PATH, StatxFlags::empty())?;
        Ok(facts.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
    };
    let is_read_only = |place: &OwnedFd| {
        let flags = rustix::fs::fstatvfs(place)?.f_flag;
        Ok(flags.contains(StatVfsMountFlags::RDONLY))
    };
    let check = |paths: &[PathBytes], holds: &dyn Fn(&OwnedFd) -> rustix::io::Result<bool>| {
        for path in paths {
            if !holds(&place_at(&path.0)?)? {
                return Err(ProtectError::Moved(path.0.clone()));
            }
        }
        Ok(())
    };
    check(&mounts.pinned, &is_mounted)?;
    check(&mounts.held, &is_mounted)?;
    check(&mounts.held, &is_read_only)
}

/// Mounts an overlay in this mount namespace.
///
/// The options name descriptors, because a path may contain the separator of options. The overlay keeps its attributes in
/// extended attributes of ordinary files (`userxattr`). This needs no privilege, and no command can set them through the overlay.
/// The overlay does not sync files to the disk (`volatile`): otherwise unmounting it would wait until the disk has written the
/// data of all programs.
fn mount_overlay(overlay: &Overlay) -> io::Result<()> {
    let at = place(&overlay.at.0)?;
    let (upper, work) = (place(&overlay.upper.0)?, place(&overlay.work.0)?);
    let lower = overlay.lower.iter().map(|path| place(&path.0));
    let lower = lower.collect::<io::Result<Vec<_>>>()?;
    let names: Vec<String> = lower.iter().map(by_descriptor).collect();
    let options = format!(
        "lowerdir={},upperdir={},workdir={},userxattr,index=off,xino=auto,volatile",
        names.join(":"),
        by_descriptor(&upper),
        by_descriptor(&work),
    );
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount(
        "co",
        by_descriptor(&at),
        "overlay",
        flags,
        &*CString::new(options)?,
    )?)
}

/// Hides each path: mounts over it a file or directory that nobody may open.
///
/// Root needs a capability to ignore permissions, and the command has none. The file has one byte, because git would treat an
/// empty file as a tracked file that has no lines.
///
/// # Errors
/// The system refuses, or a path no longer leads to its secret. Another program has removed the secret, has moved a directory in
/// its path, or has replaced a component by a symbolic link. Then the secret may come back under any name, and would be open.
pub(super) fn hide(hidden: &HiddenPaths) -> Result<(), ProtectError> {
    let Some(by) = hidden.by.as_ref().filter(|_| !hidden.paths.is_empty()) else {
        return Ok(());
    };
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(
        "co",
        &by.0,
        "tmpfs",
        flags,
        c"mode=0700,size=64k,nr_inodes=8",
    )?;
    let (file, dir) = (by.0.join("file"), by.0.join("dir"));
    rustix::fs::mkdir(&dir, Mode::empty())?;
    let made = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    rustix::io::write(rustix::fs::open(&file, made, Mode::empty())?, b"-")?;
    let masks = rustix::fs::fstat(place(&dir)?)?.st_dev;
    set(&by.0, libc::MOUNT_ATTR_RDONLY, MountScope::Here)?;
    let mut paths: Vec<&Path> = hidden.paths.iter().map(|path| path.0.as_path()).collect();
    paths.sort();
    // A path comes after those above it, which hide it too.
    paths.dedup_by(|inner, outer| inner.starts_with(outer));
    for path in &paths {
        let secret = secret_at(path)?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&secret)?.st_mode);
        let cover = if kind.is_dir() { &dir } else { &file };
        match mount_bind(cover, by_descriptor(&secret)) {
            // It was removed just now.
            Err(Errno::NOENT) => return Err(ProtectError::Moved((*path).to_owned())),
            mounted => mounted?,
        }
    }
    for path in &paths {
        if rustix::fs::fstat(secret_at(path)?)?.st_dev != masks {
            return Err(ProtectError::Moved((*path).to_owned()));
        }
    }
    unmount(&by.0, UnmountFlags::DETACH)?;
    Ok(())
}

/// Opens a secret as a mount point. No component of the path may be a symbolic link.
fn secret_at(path: &Path) -> Result<OwnedFd, ProtectError> {
    unless_moved(beneath::open_o_path(path), path)
}

/// Opens a path as a mount point. The last component may be a symbolic link, but no other component.
fn place_at(path: &Path) -> Result<OwnedFd, ProtectError> {
    unless_moved(beneath::open_place(path), path)
}

fn unless_moved<T>(done: rustix::io::Result<T>, path: &Path) -> Result<T, ProtectError> {
    match done {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => {
            Err(ProtectError::Moved(path.to_owned()))
        }
        done => Ok(done?),
    }
}

/// Enters namespaces directly if the system allows it. Otherwise enters them together with a user namespace.
fn unshare(namespaces: CloneFlags) -> io::Result<()> {
    if rustix::process::geteuid().is_root() && nix::sched::unshare(namespaces).is_ok() {
        return Ok(());
    }
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    nix::sched::unshare(CloneFlags::CLONE_NEWUSER | namespaces)?;
    let (user, group) = (user.as_raw(), group.as_raw());
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Bind-mounts a path of the workspace on itself, so that a command cannot rename, remove or replace it. Keeps the mounts below
/// it.
fn bind(path: &Path) -> Result<(), ProtectError> {
    let place = place_at(path)?;
    let here = by_descriptor(&place);
    // It may have been removed just now.
    unless_moved(mount_bind_recursive(&here, &here), path)
}

/// Opens a path as a mount point. Does not follow a symbolic link in the last component.
fn place(path: &Path) -> io::Result<OwnedFd> {
    // A link is not followed, because the mount would be at its target.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
}

/// Returns the path in `/proc` that leads to an open file.
fn by_descriptor(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// The mounts to which a change of attributes applies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MountScope {
    Here,
    /// The mount, and all mounts below it.
    Below,
}

/// Sets an attribute of the mount at `path`.
fn set(path: &Path, attribute: u64, scope: MountScope) -> io::Result<()> {
    change(path, (attribute, 0), scope)
}

fn clear_read_only(path: &Path) -> io::Result<()> {
    change(path, (0, libc::MOUNT_ATTR_RDONLY), MountScope::Here)
}

/// Sets and clears attributes of the mount at `path`.
fn change(path: &Path, (attr_set, attr_clr): (u64, u64), scope: MountScope) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attributes = libc::mount_attr {
        attr_set,
        attr_clr,
        propagation: 0,
        userns_fd: 0,
    };
    let below = if scope == MountScope::Below {
        libc::AT_RECURSIVE
    } else {
        0
    };
    let flags = libc::AT_SYMLINK_NOFOLLOW | below;
    #[expect(
        unsafe_code,
        reason = "no library wraps mount_setattr, and nothing else is recursive"
    )]
    // SAFETY: the path ends in NUL, the structure is whole and its size is passed with it.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw mut attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
