//! The refused system calls, with a reason for each group.

use nix::libc::{self, *};

use super::super::plan::SandboxLevel;
use super::{Condition, FilterConfig, Rule};

/// The newest known system call. Numbers from 424 on are the same on all architectures.
pub(super) const NEWEST: u32 = 470;

const OPEN_TREE: i64 = 428;
const MOVE_MOUNT: i64 = 429;
const FSOPEN: i64 = 430;
const FSCONFIG: i64 = 431;
const FSMOUNT: i64 = 432;
const FSPICK: i64 = 433;
const PIDFD_GETFD: i64 = 438;
const PROCESS_MADVISE: i64 = 440;
const MOUNT_SETATTR: i64 = 442;
const QUOTACTL_FD: i64 = 443;
const PROCESS_MRELEASE: i64 = 448;
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;

/// Calls that change modes, owners, times and extended attributes, which Landlock does not control.
const ATTRIBUTES: &[i64] = &[
    SYS_fchmod,
    SYS_fchmodat,
    FCHMODAT2,
    SYS_fchown,
    SYS_fchownat,
    SYS_utimensat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
];

#[cfg(target_arch = "x86_64")]
const OLD_ATTRIBUTES: &[i64] = &[
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_ATTRIBUTES: &[i64] = &[];

/// Calls that are always refused.
const NEVER: &[i64] = &[
    FILE_SETATTR,
    // Other processes: their memory, registers, descriptors.
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    PIDFD_GETFD,
    PROCESS_MADVISE,
    PROCESS_MRELEASE,
    SYS_perf_event_open,
    SYS_bpf,
    SYS_userfaultfd,
    // The keys of the session.
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    // Changes of mounts and namespaces.
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_setns,
    OPEN_TREE,
    MOVE_MOUNT,
    FSOPEN,
    FSCONFIG,
    FSMOUNT,
    FSPICK,
    MOUNT_SETATTR,
    OPEN_TREE_ATTR,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    SYS_quotactl,
    QUOTACTL_FD,
    // Shared memory and queues, which have no path.
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_msgget,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_msgctl,
    SYS_semget,
    SYS_semop,
    SYS_semtimedop,
    SYS_semctl,
    SYS_mq_open,
    SYS_mq_unlink,
    // Settings of the machine.
    SYS_acct,
    SYS_swapon,
    SYS_swapoff,
    SYS_reboot,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_syslog,
    SYS_vhangup,
    SYS_nfsservctl,
    SYS_lookup_dcookie,
];

#[cfg(target_arch = "x86_64")]
const OLD_NEVER: &[i64] = &[SYS_iopl, SYS_ioperm];
#[cfg(not(target_arch = "x86_64"))]
const OLD_NEVER: &[i64] = &[];

/// Calls that open files by name, and the index of their flags.
#[cfg(target_arch = "x86_64")]
const OPENS: &[(i64, u8)] = &[(SYS_openat, 2), (SYS_open, 1)];
#[cfg(not(target_arch = "x86_64"))]
const OPENS: &[(i64, u8)] = &[(SYS_openat, 2)];

/// Calls that return "not implemented", so that libraries use an older call with arguments that can be checked.
const ABSENT: &[i64] = &[
    SYS_clone3,
    // The flags are in memory, which a filter cannot read.
    SYS_openat2,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_pidfd_send_signal,
];

/// Calls that report names and changes in directories that Landlock closes. They return "not implemented", so that
/// programs poll instead.
const WATCHES: &[i64] = &[SYS_inotify_init1, SYS_inotify_add_watch];
#[cfg(target_arch = "x86_64")]
const OLD_WATCHES: &[i64] = &[SYS_inotify_init];
#[cfg(not(target_arch = "x86_64"))]
const OLD_WATCHES: &[i64] = &[];

/// Calls that are refused without network. `socket` itself has its own rules.
const PEERS: &[i64] = &[SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4];

/// The flags of `clone` and `unshare` that make namespaces.
const NAMESPACES: u32 = (CLONE_NEWNS
    | CLONE_NEWCGROUP
    | CLONE_NEWUTS
    | CLONE_NEWIPC
    | CLONE_NEWUSER
    | CLONE_NEWPID
    | CLONE_NEWNET) as u32;
const CLONE_NEWTIME: u32 = 0x80;

/// The allowed `ioctl` requests. All others change something or are unknown. Missing on purpose: TIOCSTI, TIOCLINUX,
/// TIOCCONS, TIOCSETD, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FIFREEZE, those that make btrfs subvolumes, FIOSETOWN.
const REQUESTS: &[u32] = &[
    0x5401,
    0x5402,
    0x5403,
    0x5404, // TCGETS to TCSETSF
    0x5409,
    0x540A,
    0x540B, // TCSBRK, TCXONC, TCFLSH
    0x540E,
    0x540F,
    0x5410,
    0x5411, // TIOCSCTTY, TIOCGPGRP, TIOCSPGRP, TIOCOUTQ
    0x5413,
    0x5414, // TIOCGWINSZ, TIOCSWINSZ
    0x541B,
    0x5421,
    0x5422,
    0x5429, // FIONREAD, FIONBIO, TIOCNOTTY, TIOCGSID
    0x5425, // TCSBRKP
    0x802C_542A,
    0x402C_542B,
    0x402C_542C,
    0x402C_542D, // TCGETS2 to TCSETSF2
    0x8004_5430,
    0x4004_5431,
    0x5441, // TIOCGPTN, TIOCSPTLCK, TIOCGPTPEER
    0x5450,
    0x5451,
    0x5452,
    0x5460, // FIONCLEX, FIOCLEX, FIOASYNC, FIOQSIZE
    0x8008_6601,
    0x8004_6601,
    0x801C_581F, // FS_IOC_GETFLAGS, its 32-bit twin, FSGETXATTR
    0x8008_7601,
    0xC020_660B,
    0x2, // FS_IOC_GETVERSION, FIEMAP, FIGETBSZ
    0x4004_9409,
    0x4020_940D, // FICLONE, FICLONERANGE: they need a descriptor open for writing
    0x8905,
    0x8910,
    0x8912,
    0x8913,
    0x8915,
    0x891B,
    0x8921,
    0x8927,
    0x8933, // what asks about network interfaces
];

/// The value for "a user" of `ioprio_set`. With the number 0, it means all processes of this user (`linux/ioprio.h`).
const IOPRIO_WHO_USER: u32 = 3;

const F_SET_RW_HINT: u32 = 1036;
const F_SET_FILE_RW_HINT: u32 = 1038;

/// Calls that set priorities, limits and processors. The number 0 means the calling process.
const OF_OTHERS: &[(i64, u8)] = &[
    (SYS_setpriority, 1),
    (SYS_ioprio_set, 1),
    (SYS_sched_setaffinity, 0),
    (SYS_sched_setscheduler, 0),
    (SYS_sched_setparam, 0),
    (SYS_sched_setattr, 0),
    (SYS_prlimit64, 0),
    (SYS_migrate_pages, 0),
    (SYS_move_pages, 0),
];

/// Calls that set a mode, and the index of that argument.
const MODES: &[(i64, u8)] = &[
    (SYS_fchmod, 1),
    (SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (SYS_mknodat, 2),
];
#[cfg(target_arch = "x86_64")]
const OLD_MODES: &[(i64, u8)] = &[(SYS_chmod, 1), (SYS_mknod, 1), (SYS_creat, 1)];
#[cfg(not(target_arch = "x86_64"))]
const OLD_MODES: &[(i64, u8)] = &[];

/// Returns all rules for these inputs.
pub(super) fn rules(config: FilterConfig) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::with_capacity(160);
    let whole = |calls: &[i64]| {
        calls
            .iter()
            .map(|call| Rule::always(*call))
            .collect::<Vec<_>>()
    };
    let absent = [ABSENT, WATCHES, OLD_WATCHES].concat();
    rules.extend(absent.iter().map(|call| Rule::always(*call).errno(ENOSYS)));
    rules.extend(whole(NEVER));
    rules.extend(whole(OLD_NEVER));
    rules.extend(OPENS.iter().map(without_access));
    rules.extend(setuid());
    rules.extend(marks());
    if config.level != SandboxLevel::Workspace || !config.mounted {
        rules.extend(whole(ATTRIBUTES));
        rules.extend(whole(OLD_ATTRIBUTES));
    }
    rules.extend([
        Rule::new(SYS_ioctl, Condition::NotIn(1, REQUESTS)).errno(ENOTTY),
        Rule::new(SYS_clone, Condition::AnyBit(0, NAMESPACES)),
        Rule::new(
            SYS_unshare,
            Condition::AnyBit(0, NAMESPACES | CLONE_NEWTIME),
        ),
    ]);
    rules.extend(
        OF_OTHERS
            .iter()
            .map(|(call, argument)| Rule::new(*call, Condition::NotIn(*argument, &[0]))),
    );
    rules.extend([
        Rule::new(SYS_setpriority, Condition::In(0, &[PRIO_USER])),
        Rule::new(SYS_ioprio_set, Condition::In(0, &[IOPRIO_WHO_USER])),
        // A lease blocks other programs that open the file; the second request reports changes in a directory; the
        // others change how the file is written.
        Rule::new(
            SYS_fcntl,
            Condition::In(
                1,
                &[
                    libc::F_SETLEASE as u32,
                    libc::F_NOTIFY as u32,
                    F_SET_RW_HINT,
                    F_SET_FILE_RW_HINT,
                ],
            ),
        ),
    ]);
    if config.level != SandboxLevel::Workspace {
        rules.extend(locks());
        // All pipes of a user share a number of pages.
        rules.push(Rule::new(
            SYS_fcntl,
            Condition::In(1, &[libc::F_SETPIPE_SZ as u32]),
        ));
    }
    rules.extend(sockets(config.network));
    if config.abi < 3 {
        rules.extend(truncation());
    }
    if config.abi < 6 && !config.pid_namespace {
        rules.extend(signals());
    }
    rules
}

/// Refuses the access mode 3, for neither reading nor writing. With it, Landlock allows every file to be opened.
fn without_access((call, flags): &(i64, u8)) -> Rule {
    let mode = O_ACCMODE as u32;
    Rule::new(*call, Condition::Masked(*flags, mode, mode))
}

/// Refuses setuid modes. Anybody on the machine could run such a program with its owner's permissions.
fn setuid() -> impl Iterator<Item = Rule> {
    let sets = |argument: u8| Condition::AnyBit(argument, S_ISUID);
    let modes = MODES.iter().chain(OLD_MODES);
    let by_mode = modes.map(move |(call, mode)| Rule::new(*call, sets(*mode)));
    // The mode follows the flags, and is unused if no file is made.
    let made = (O_CREAT | O_TMPFILE & !O_DIRECTORY) as u32;
    let by_flags = OPENS.iter().map(move |(call, flags)| {
        Rule::new(*call, Condition::AnyBit(*flags, made)).and(sets(flags + 1))
    });
    by_mode.chain(by_flags)
}

/// Refuses changes of the limit of file locks, by which the executor finds the processes of a command.
fn marks() -> [Rule; 2] {
    const LOCKS: &[u32] = &[RLIMIT_LOCKS];
    [
        Rule::new(SYS_setrlimit, Condition::In(0, LOCKS)),
        Rule::new(SYS_prlimit64, Condition::In(1, LOCKS)).and(Condition::Some(2)),
    ]
}

/// Refuses file locks at the read-only level, because a lock on a read-only file blocks programs that write it. In
/// the workspace, builds need locks, and a filter cannot see the file.
fn locks() -> [Rule; 2] {
    const TAKE: &[u32] = &[
        F_SETLK as u32,
        F_SETLKW as u32,
        F_OFD_SETLK as u32,
        F_OFD_SETLKW as u32,
    ];
    [
        // Cargo and Go take this error for a file system without locks, and continue.
        Rule::always(SYS_flock).errno(ENOSYS),
        // Programs give up on this error. For other errors, SQLite first retries, or reports a broken disk.
        Rule::new(SYS_fcntl, Condition::In(1, TAKE)),
    ]
}

fn sockets(network: bool) -> Vec<Rule> {
    // A datagram socket of a pair can send to any address later. A stream socket cannot.
    let mut rules = vec![
        Rule::new(SYS_socketpair, Condition::NotIn(0, &[AF_UNIX as u32])),
        Rule::new(SYS_socketpair, Condition::Masked(1, 0xF, SOCK_DGRAM as u32)),
        // AF_UNIX treats this type the same way.
        Rule::new(SYS_socketpair, Condition::Masked(1, 0xF, SOCK_RAW as u32)),
    ];
    if network {
        // The sockets of the editor, docker and the buses are AF_UNIX, and each leads out of the sandbox.
        let families = &[AF_INET as u32, AF_INET6 as u32];
        rules.push(Rule::new(SYS_socket, Condition::NotIn(0, families)));
    } else {
        rules.push(Rule::always(SYS_socket));
        rules.extend(PEERS.iter().map(|call| Rule::always(*call)));
    }
    rules
}

/// Landlock before version 3 does not control truncation of readable files.
fn truncation() -> Vec<Rule> {
    let emptying = (O_TRUNC | O_ACCMODE) as u32;
    let emptied = |(call, flags): &(i64, u8)| {
        Rule::new(*call, Condition::Masked(*flags, emptying, O_TRUNC as u32))
    };
    let mut rules = vec![Rule::always(SYS_truncate)];
    rules.extend(OPENS.iter().map(emptied));
    rules
}

/// Landlock before version 6 does not control signals; a PID namespace does. Without one, only the own process group may be signalled, and threads only
/// with the ignored signal that some runtimes use to interrupt themselves.
fn signals() -> Vec<Rule> {
    let harmless = &[0, SIGURG as u32];
    vec![
        Rule::new(SYS_kill, Condition::NotIn(0, &[0])),
        Rule::new(SYS_tgkill, Condition::NotIn(2, harmless)),
        Rule::always(SYS_tkill),
        Rule::always(SYS_rt_sigqueueinfo),
        Rule::always(SYS_rt_tgsigqueueinfo),
        Rule::new(SYS_fcntl, Condition::In(1, &[libc::F_SETOWN as u32, 15])),
    ]
}
