//! Makes the mount namespace of a command: only some directories in it are writable, some names in them are
//! protected, and secrets cannot be opened.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::libc;
use nix::sched::CloneFlags;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, unmount,
};

use super::plan::{HiddenPaths, Mounts};

/// Enters a new mount namespace and makes it read-only, except for the paths in `mounts`. The next child of this
/// process is also in the namespaces `others`.
///
/// # Errors
/// The kernel or its settings refuse a step.
pub(super) fn enter(mounts: &Mounts, others: CloneFlags) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS | others)?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    for path in &mounts.writable {
        mount_bind_recursive(&path.0, &path.0)?;
    }
    set(Path::new("/"), libc::MOUNT_ATTR_RDONLY, Reach::Below)?;
    for path in &mounts.writable {
        clear_read_only(&path.0)?;
    }
    if let Some(dir) = &mounts.memory {
        let bounds = format!("mode=0700,size={},nr_inodes={}", dir.bytes, dir.files);
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("co", &dir.path.0, "tmpfs", flags, &*CString::new(bounds)?)?;
    }
    for path in &mounts.pinned {
        bind(&path.0)?;
    }
    for path in &mounts.held {
        if bind(&path.0)? {
            set(&path.0, libc::MOUNT_ATTR_RDONLY, Reach::Here)?;
        }
    }
    hide(&mounts.hidden)
}

/// Hides each path: mounts a file or directory without any permission on it.
///
/// Root needs a capability to ignore permissions, and the command has none. The file has one byte, because git takes
/// an empty file for a tracked file without lines.
fn hide(hidden: &HiddenPaths) -> io::Result<()> {
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
    set(&by.0, libc::MOUNT_ATTR_RDONLY, Reach::Here)?;
    for path in &hidden.paths {
        let Some(place) = mount_point(&path.0)? else {
            continue;
        };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode);
        let cover = if kind.is_dir() { &dir } else { &file };
        mount_bind(cover, format!("/proc/self/fd/{}", place.as_raw_fd()))?;
    }
    unmount(&by.0, UnmountFlags::DETACH)?;
    Ok(())
}

/// Enters namespaces directly if this is allowed, otherwise inside a user namespace.
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

/// Mounts a path of the workspace on itself, so that a command cannot rename, remove or replace it. Does nothing if
/// it no longer exists. Mounts below it stay.
fn bind(path: &Path) -> io::Result<bool> {
    let Some(place) = mount_point(path)? else {
        return Ok(false);
    };
    let here = format!("/proc/self/fd/{}", place.as_raw_fd());
    mount_bind_recursive(&here, &here)?;
    Ok(true)
}

/// Opens a path as a mount point. Returns none if nothing is there.
fn mount_point(path: &Path) -> io::Result<Option<OwnedFd>> {
    // A link is not followed, because the mount would be at its target.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
        place => Ok(Some(place?)),
    }
}

/// The mounts that an attribute is set on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Here,
    /// With all mounts below.
    Below,
}

/// Sets an attribute of the mount at `path`.
fn set(path: &Path, attribute: u64, reach: Reach) -> io::Result<()> {
    change(path, (attribute, 0), reach)
}

fn clear_read_only(path: &Path) -> io::Result<()> {
    change(path, (0, libc::MOUNT_ATTR_RDONLY), Reach::Here)
}

/// Sets and clears attributes of the mount at `path`.
fn change(path: &Path, (attr_set, attr_clr): (u64, u64), reach: Reach) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attributes = libc::mount_attr {
        attr_set,
        attr_clr,
        propagation: 0,
        userns_fd: 0,
    };
    let below = if reach == Reach::Below {
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
