//! The arguments for which allowed system calls are refused, with the reason for each group.

use nix::libc::{self, *};

use super::calls::FCHMODAT2;
use super::refused_call::{Condition, FilterConfig, RefusedCall};
use crate::confinement::level::{Calls, Network};

/// Calls that open files by name, and the index of their argument with flags.
#[cfg(target_arch = "x86_64")]
const OPENS: &[(i64, u8)] = &[(SYS_openat, 2), (SYS_open, 1)];
#[cfg(not(target_arch = "x86_64"))]
const OPENS: &[(i64, u8)] = &[(SYS_openat, 2)];

/// Calls that set a mode, and the index of their argument with the mode.
#[cfg(target_arch = "x86_64")]
const MODES: &[(i64, u8)] = &[
    (SYS_fchmod, 1),
    (SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (SYS_mknodat, 2),
    (SYS_chmod, 1),
    (SYS_mknod, 1),
    (SYS_creat, 1),
];
#[cfg(not(target_arch = "x86_64"))]
const MODES: &[(i64, u8)] = &[
    (SYS_fchmod, 1),
    (SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (SYS_mknodat, 2),
];

/// Calls that set the priority or the processors of a thread, and the index of their argument with the thread's id. The id 0
/// means the calling thread.
const SCHEDULING: &[(i64, u8)] = &[
    (SYS_setpriority, 1),
    (SYS_ioprio_set, 1),
    (SYS_sched_setaffinity, 0),
    (SYS_sched_setscheduler, 0),
    (SYS_sched_setparam, 0),
    (SYS_sched_setattr, 0),
];

/// The flags of `clone` and `unshare` that create namespaces.
const NAMESPACES: u32 = (CLONE_NEWNS
    | CLONE_NEWCGROUP
    | CLONE_NEWUTS
    | CLONE_NEWIPC
    | CLONE_NEWUSER
    | CLONE_NEWPID
    | CLONE_NEWNET) as u32;
const CLONE_NEWTIME: u32 = 0x80;

/// The allowed `ioctl` requests. All others change something or are unknown. Omitted on purpose: TIOCSTI, TIOCLINUX, TIOCCONS,
/// TIOCSETD, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FIFREEZE, FIOSETOWN, and the requests that create btrfs subvolumes.
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

/// The value of `ioprio_set` that selects a user. With the id 0, it selects all processes of this user (`linux/ioprio.h`).
const IOPRIO_WHO_USER: u32 = 3;

const F_SET_RW_HINT: u32 = 1036;
const F_SET_FILE_RW_HINT: u32 = 1038;

/// Returns all refusals for a configuration.
pub(super) fn refusals(config: FilterConfig) -> Vec<RefusedCall> {
    let mut refusals: Vec<RefusedCall> = Vec::with_capacity(64);
    refusals.extend(OPENS.iter().map(without_access));
    refusals.extend(setuid());
    refusals.extend(marks());
    refusals.extend(others(config));
    refusals.extend([
        RefusedCall::new(SYS_ioctl, Condition::NotIn(1, REQUESTS)).errno(ENOTTY),
        RefusedCall::new(SYS_clone, Condition::AnyBit(0, NAMESPACES)),
        RefusedCall::new(
            SYS_unshare,
            Condition::AnyBit(0, NAMESPACES | CLONE_NEWTIME),
        ),
        // Programs would answer system calls of others.
        RefusedCall::new(
            SYS_seccomp,
            Condition::AnyBit(1, SECCOMP_FILTER_FLAG_NEW_LISTENER as u32),
        ),
    ]);
    refusals.extend(sockets(config));
    refusals.extend(shared());
    refusals.extend(hidden_files());
    if config.calls != (Calls::Work { reserve: true }) {
        // It takes room faster than co counts it. Programs then write instead.
        refusals.push(RefusedCall::new(SYS_fallocate, Condition::Always).errno(EOPNOTSUPP));
    }
    if !config.calls.work() {
        refusals.extend(read_only());
    }
    if config.abi < 3 {
        refusals.extend(truncation());
    }
    if config.abi < 6 && !config.pid_namespace {
        refusals.extend(signals());
    }
    refusals
}

/// Refuses the access mode 3, which asks for neither reading nor writing, because Landlock lets every file be opened in this
/// mode.
fn without_access((call, flags): &(i64, u8)) -> RefusedCall {
    let mode = O_ACCMODE as u32;
    RefusedCall::new(*call, Condition::Masked(*flags, mode, mode))
}

/// Refuses modes with the setuid bit. Anybody on the machine could run such a program with the permissions of its owner.
fn setuid() -> impl Iterator<Item = RefusedCall> {
    let sets = |argument: u8| Condition::AnyBit(argument, S_ISUID);
    let by_mode = MODES
        .iter()
        .map(move |(call, mode)| RefusedCall::new(*call, sets(*mode)));
    // The mode follows the flags, and is unused if no file is made.
    let made = (O_CREAT | O_TMPFILE & !O_DIRECTORY) as u32;
    let by_flags = OPENS.iter().map(move |(call, flags)| {
        RefusedCall::new(*call, Condition::AnyBit(*flags, made)).and(sets(flags + 1))
    });
    by_mode.chain(by_flags)
}

/// Refuses changes of the limit of file locks, because the executor identifies the processes of a command by this limit.
fn marks() -> [RefusedCall; 2] {
    #[allow(clippy::unnecessary_cast, reason = "it is an i32 with musl")]
    const LOCKS: &[u32] = &[RLIMIT_LOCKS as u32];
    [
        RefusedCall::new(SYS_setrlimit, Condition::In(0, LOCKS)),
        RefusedCall::new(SYS_prlimit64, Condition::In(1, LOCKS)).and(Condition::Some(2)),
    ]
}

/// Refuses calls that slow down, limit or watch other processes.
///
/// In its own PID namespace, a command can name only its own threads. Without one, the filter allows such calls only for the
/// calling thread, because it cannot distinguish the command's other threads from the threads of other programs.
fn others(config: FilterConfig) -> impl Iterator<Item = RefusedCall> {
    // A lease blocks other programs that open the file; the second request reports changes in a directory; the
    // others change how the file is written.
    const BLOCKS: &[u32] = &[
        F_SETLEASE as u32,
        F_NOTIFY as u32,
        F_SET_RW_HINT,
        F_SET_FILE_RW_HINT,
    ];
    #[allow(clippy::unnecessary_cast, reason = "it is an i32 with musl")]
    const OF_A_USER: &[u32] = &[PRIO_USER as u32];
    let not_own =
        |(call, argument): &(i64, u8)| RefusedCall::new(*call, Condition::NotIn(*argument, &[0]));
    let scheduling: &[_] = if config.pid_namespace {
        &[]
    } else {
        SCHEDULING
    };
    scheduling.iter().map(not_own).chain([
        RefusedCall::new(SYS_prlimit64, Condition::NotIn(0, &[0])),
        RefusedCall::new(SYS_setpriority, Condition::In(0, OF_A_USER)),
        RefusedCall::new(SYS_ioprio_set, Condition::In(0, &[IOPRIO_WHO_USER])),
        RefusedCall::new(SYS_fcntl, Condition::In(1, BLOCKS)),
    ])
}

/// Refuses calls that take a large share of a resource that all programs of the user or of the machine share.
fn shared() -> [RefusedCall; 4] {
    const PIPE_SIZE: &[u32] = &[F_SETPIPE_SZ as u32];
    const SOCKET: &[u32] = &[SOL_SOCKET as u32];
    const BUFFERS: &[u32] = &[SO_SNDBUF as u32, SO_RCVBUF as u32];
    let huge = |call, argument, flag| {
        RefusedCall::new(call, Condition::AnyBit(argument, flag)).errno(ENOMEM)
    };
    [
        RefusedCall::new(SYS_fcntl, Condition::In(1, PIPE_SIZE)),
        // The size is a wish, and programs take its refusal for a fault.
        RefusedCall::new(SYS_setsockopt, Condition::In(1, SOCKET))
            .and(Condition::In(2, BUFFERS))
            .errno(0),
        huge(SYS_mmap, 3, MAP_HUGETLB as u32),
        huge(SYS_memfd_create, 1, MFD_HUGETLB),
    ]
}

/// Refuses calls that would hide open files from co, which counts open files in `/proc`.
fn hidden_files() -> [RefusedCall; 4] {
    const DUMPABLE: &[u32] = &[PR_SET_DUMPABLE as u32];
    let thread = (CLONE_THREAD | CLONE_FILES) as u32;
    [
        // A thread with its own table of open files.
        RefusedCall::new(SYS_clone, Condition::Masked(0, thread, CLONE_THREAD as u32)),
        RefusedCall::new(SYS_unshare, Condition::AnyBit(0, CLONE_FILES as u32)),
        RefusedCall::new(SYS_close_range, Condition::AnyBit(2, CLOSE_RANGE_UNSHARE)),
        // Nothing in the sandbox can trace a process, so programs need not know.
        RefusedCall::new(SYS_prctl, Condition::In(0, DUMPABLE))
            .and(Condition::NotIn(1, &[1]))
            .errno(0),
    ]
}

/// Refuses calls that a read-only program does not need, and calls that allocate memory that co cannot count.
fn read_only() -> [RefusedCall; 3] {
    // A process that unmaps such memory can keep it.
    const SHARED: u32 = (MAP_SHARED | MAP_ANONYMOUS) as u32;
    const LOCKS: &[u32] = &[
        // Programs give up on the error for locks. For other errors, SQLite first retries, or reports a broken disk.
        F_SETLK as u32,
        F_SETLKW as u32,
        F_OFD_SETLK as u32,
        F_OFD_SETLKW as u32,
    ];
    [
        RefusedCall::new(SYS_fcntl, Condition::In(1, LOCKS)),
        RefusedCall::new(
            SYS_socketpair,
            Condition::Masked(1, 0xF, SOCK_SEQPACKET as u32),
        ),
        RefusedCall::new(SYS_mmap, Condition::Masked(3, SHARED, SHARED)),
    ]
}

fn sockets(config: FilterConfig) -> Vec<RefusedCall> {
    let mut refusals = vec![
        RefusedCall::new(SYS_socketpair, Condition::NotIn(0, &[AF_UNIX as u32])),
        // A datagram socket of a pair can send to any address later. A stream socket cannot.
        RefusedCall::new(SYS_socketpair, Condition::Masked(1, 0xF, SOCK_DGRAM as u32)),
        // AF_UNIX treats this type the same way.
        RefusedCall::new(SYS_socketpair, Condition::Masked(1, 0xF, SOCK_RAW as u32)),
    ];
    // Urgent data had bugs by which programs took over the kernel.
    let urgent = [
        (SYS_sendto, 3),
        (SYS_recvfrom, 3),
        (SYS_sendmsg, 2),
        (SYS_recvmsg, 2),
        (SYS_sendmmsg, 3),
        (SYS_recvmmsg, 3),
    ];
    refusals.extend(urgent.map(|(call, flags)| {
        RefusedCall::new(call, Condition::AnyBit(flags, MSG_OOB as u32)).errno(EOPNOTSUPP)
    }));
    if config.network != Network::None {
        // The sockets of the editor, docker and the buses are AF_UNIX, and each leads out of the sandbox.
        let families = &[AF_INET as u32, AF_INET6 as u32];
        refusals.push(RefusedCall::new(SYS_socket, Condition::NotIn(0, families)));
    }
    refusals
}

/// Refuses truncation of files, because Landlock before version 3 does not control it for readable files.
fn truncation() -> Vec<RefusedCall> {
    let emptying = (O_TRUNC | O_ACCMODE) as u32;
    let emptied = |(call, flags): &(i64, u8)| {
        RefusedCall::new(*call, Condition::Masked(*flags, emptying, O_TRUNC as u32))
    };
    let mut refusals = vec![RefusedCall::new(SYS_truncate, Condition::Always)];
    refusals.extend(OPENS.iter().map(emptied));
    refusals
}

/// Restricts signals, because Landlock before version 6 does not control them and there is no PID namespace. A command may signal
/// only its own process group. It may signal threads only with one signal, which some runtimes use to interrupt their own
/// threads. Programs ignore this signal by default.
fn signals() -> Vec<RefusedCall> {
    let harmless = &[0, SIGURG as u32];
    let always = |call| RefusedCall::new(call, Condition::Always);
    vec![
        RefusedCall::new(SYS_kill, Condition::NotIn(0, &[0])),
        RefusedCall::new(SYS_tgkill, Condition::NotIn(2, harmless)),
        always(SYS_tkill),
        always(SYS_rt_sigqueueinfo),
        always(SYS_rt_tgsigqueueinfo),
        RefusedCall::new(SYS_fcntl, Condition::In(1, &[libc::F_SETOWN as u32, 15])),
    ]
}
