//! The allowed system calls, with the reason for each group. All other calls return "not implemented", so that programs and
//! libraries fall back to older calls or do without.
//!
//! These calls are omitted on purpose, at all levels: those that read or trace other processes, create mounts or namespaces, open
//! files by handles, watch files, or share memory or queues without a path. Also omitted are calls that take their arguments from
//! memory, which a filter cannot read (`clone3`, `openat2`, `io_uring`). Two other calls are omitted too: `vmsplice` puts pages
//! into a pipe, where co cannot count them, and `io_setup` uses a quota that all programs of the machine share.

use nix::libc::*;

use super::refused_call::FilterConfig;
use crate::confinement::level::Network;

/// Expands names of system calls to a list of their numbers.
macro_rules! calls {
    ($($call:ident)+) => { &[$($call),+] };
}

// Calls that the C library's table lacks. Numbers from 424 on are the same on all architectures.
pub(super) const FCHMODAT2: i64 = 452;
const MAP_SHADOW_STACK: i64 = 453;
const FUTEX_WAKE: i64 = 454;
const FUTEX_WAIT: i64 = 455;
const FUTEX_REQUEUE: i64 = 456;
const SETXATTRAT: i64 = 463;
const GETXATTRAT: i64 = 464;
const LISTXATTRAT: i64 = 465;
const REMOVEXATTRAT: i64 = 466;
const FILE_GETATTR: i64 = 468;

/// Calls for files and directories. Landlock decides which files a command may open, create, move and remove.
const FILES: &[i64] = calls![
    SYS_openat SYS_close SYS_close_range SYS_read SYS_pread64 SYS_readv SYS_preadv SYS_preadv2
    SYS_write SYS_pwrite64 SYS_writev SYS_pwritev SYS_pwritev2 SYS_lseek SYS_readahead
    SYS_fadvise64 SYS_sendfile SYS_copy_file_range SYS_splice SYS_tee SYS_fsync SYS_fdatasync
    SYS_fallocate SYS_ftruncate SYS_truncate SYS_fstat SYS_newfstatat SYS_statx SYS_statfs
    SYS_fstatfs SYS_faccessat SYS_faccessat2 SYS_readlinkat SYS_getdents64 SYS_getcwd SYS_chdir
    SYS_fchdir SYS_umask SYS_mkdirat SYS_mknodat SYS_linkat SYS_symlinkat SYS_unlinkat
    SYS_renameat2 SYS_getxattr SYS_lgetxattr SYS_fgetxattr GETXATTRAT SYS_listxattr
    SYS_llistxattr SYS_flistxattr LISTXATTRAT FILE_GETATTR SYS_dup SYS_dup3 SYS_fcntl SYS_ioctl
    SYS_pipe2
];

/// Calls for the memory of the calling process.
const MEMORY: &[i64] = calls![
    SYS_brk SYS_mmap SYS_munmap SYS_mremap SYS_mprotect SYS_madvise SYS_msync SYS_mincore
    SYS_mlock SYS_mlock2 SYS_mlockall SYS_munlock SYS_munlockall SYS_mseal SYS_pkey_alloc
    SYS_pkey_free SYS_pkey_mprotect SYS_get_mempolicy SYS_membarrier MAP_SHADOW_STACK
];

/// Calls for processes and threads: start, wait, end, groups, limits, priorities.
const PROCESSES: &[i64] = calls![
    SYS_clone SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_wait4 SYS_waitid
    SYS_pidfd_open SYS_getpid SYS_getppid SYS_gettid SYS_set_tid_address SYS_setsid SYS_getsid
    SYS_setpgid SYS_getpgid SYS_prctl SYS_prlimit64 SYS_getrusage SYS_getpriority
    SYS_setpriority SYS_ioprio_get SYS_ioprio_set SYS_sched_yield SYS_sched_getparam
    SYS_sched_setparam SYS_sched_getscheduler SYS_sched_setscheduler SYS_sched_getattr
    SYS_sched_setattr SYS_sched_getaffinity SYS_sched_setaffinity SYS_sched_get_priority_max
    SYS_sched_get_priority_min SYS_sched_rr_get_interval SYS_getcpu SYS_rseq SYS_set_robust_list
    SYS_get_robust_list SYS_seccomp
];

/// Calls for the user, groups and capabilities. Without capabilities, a process cannot become another user.
const IDENTITY: &[i64] = calls![
    SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getresuid SYS_getresgid SYS_getgroups
    SYS_setuid SYS_setgid SYS_setreuid SYS_setregid SYS_setresuid SYS_setresgid SYS_setfsuid
    SYS_setfsgid SYS_setgroups SYS_capget SYS_capset
];

/// Calls for signals. Landlock or further rules restrict signals to processes of the command.
const SIGNALS: &[i64] = calls![
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_rt_sigpending SYS_rt_sigtimedwait
    SYS_rt_sigsuspend SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo SYS_sigaltstack SYS_kill
    SYS_tkill SYS_tgkill SYS_signalfd4 SYS_restart_syscall
];

/// Calls for waiting, for the time, and for information about the machine.
const WAITING: &[i64] = calls![
    SYS_ppoll SYS_pselect6 SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2
    SYS_eventfd2 SYS_futex SYS_futex_waitv FUTEX_WAKE FUTEX_WAIT FUTEX_REQUEUE SYS_nanosleep
    SYS_clock_nanosleep SYS_clock_gettime SYS_clock_getres SYS_gettimeofday SYS_times
    SYS_getitimer SYS_setitimer SYS_timer_create SYS_timer_settime SYS_timer_gettime
    SYS_timer_getoverrun SYS_timer_delete SYS_timerfd_create SYS_timerfd_settime
    SYS_timerfd_gettime SYS_getrandom SYS_uname SYS_sysinfo
];

/// Calls for pairs of sockets, which some runtimes use as pipes.
const PAIRS: &[i64] = calls![
    SYS_socketpair SYS_sendto SYS_recvfrom SYS_getsockopt SYS_getsockname SYS_getpeername
    SYS_shutdown
];

/// Older forms of the calls above, which only this architecture has.
#[cfg(target_arch = "x86_64")]
const OLDER: &[i64] = calls![
    SYS_open SYS_creat SYS_stat SYS_lstat SYS_access SYS_readlink SYS_getdents SYS_mkdir
    SYS_rmdir SYS_mknod SYS_link SYS_symlink SYS_unlink SYS_rename SYS_renameat SYS_dup2
    SYS_pipe SYS_sync_file_range SYS_fork SYS_vfork SYS_getpgrp SYS_getrlimit SYS_setrlimit
    SYS_arch_prctl SYS_poll SYS_select SYS_epoll_create SYS_epoll_wait SYS_eventfd SYS_signalfd
    SYS_pause SYS_alarm SYS_time
];
/// Older forms of the calls above whose numbers the C library does not define: `renameat`, `sync_file_range`, `getrlimit`,
/// `setrlimit`.
#[cfg(target_arch = "aarch64")]
const OLDER: &[i64] = &[38, 84, 163, 164];

/// Calls that builds, tests and servers need, and read-only programs do not.
const WORK: &[i64] = calls![
    SYS_flock SYS_sync SYS_syncfs SYS_setsockopt
    // A filter cannot see what a message carries: descriptors, and parts of the kernel that had many bugs.
    SYS_sendmsg SYS_sendmmsg SYS_recvmsg SYS_recvmmsg
    // Memory without a path.
    SYS_memfd_create SYS_remap_file_pages SYS_mbind SYS_set_mempolicy
    // Rules without a bound.
    SYS_landlock_create_ruleset SYS_landlock_add_rule SYS_landlock_restrict_self SYS_unshare
    SYS_personality
];

/// Calls that change modes, owners, times and extended attributes, which Landlock does not control.
const ATTRIBUTES: &[i64] = calls![
    SYS_fchmod SYS_fchmodat FCHMODAT2 SYS_fchown SYS_fchownat SYS_utimensat SYS_setxattr
    SYS_lsetxattr SYS_fsetxattr SETXATTRAT SYS_removexattr SYS_lremovexattr SYS_fremovexattr
    REMOVEXATTRAT
];
#[cfg(target_arch = "x86_64")]
const OLDER_ATTRIBUTES: &[i64] = calls![
    SYS_chmod SYS_chown SYS_lchown SYS_utime SYS_utimes SYS_futimesat
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_ATTRIBUTES: &[i64] = &[];

/// Calls for sockets that reach other programs.
const SOCKETS: &[i64] = calls![
    SYS_socket SYS_connect SYS_bind SYS_listen SYS_accept SYS_accept4
];

/// The system calls of a command that do not return "not implemented".
#[derive(Debug, Default)]
pub(super) struct SystemCalls {
    pub allowed: Vec<i64>,
    /// Calls that return "not permitted". Programs report this error, but would treat "not implemented" as a bug.
    pub refused: Vec<i64>,
}

impl SystemCalls {
    pub(super) fn of(config: FilterConfig) -> Self {
        let works = config.calls.work();
        let mut allowed = [
            FILES, MEMORY, PROCESSES, IDENTITY, SIGNALS, WAITING, PAIRS, OLDER,
        ]
        .concat();
        let mut refused = Vec::new();
        if works {
            allowed.extend(WORK);
        }
        for (group, is_allowed) in [
            (ATTRIBUTES, works && config.mounted),
            (OLDER_ATTRIBUTES, works && config.mounted),
            (SOCKETS, config.network != Network::None),
        ] {
            let list = if is_allowed {
                &mut allowed
            } else {
                &mut refused
            };
            list.extend(group);
        }
        Self { allowed, refused }
    }
}
