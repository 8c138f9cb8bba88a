use nix::libc::*;

use super::*;
use crate::confinement::level::{Calls, Network};

/// The answer of the filter to a system call.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Allow,
    Errno(i32),
    Kill,
}

fn answer(config: FilterConfig, arch: u32, number: i64, arguments: [u64; 6]) -> Answer {
    let mut data = Vec::new();
    data.extend(u32::try_from(number).unwrap().to_le_bytes());
    data.extend(arch.to_le_bytes());
    data.extend(0_u64.to_le_bytes());
    data.extend(arguments.iter().flat_map(|argument| argument.to_le_bytes()));
    let word = |at: u32| {
        let at = at as usize;
        u32::from_le_bytes(data[at..at + 4].try_into().unwrap())
    };
    let code = program(config);
    let (mut at, mut accumulator) = (0_usize, 0_u32);
    loop {
        let step = &code[at];
        at += 1;
        let hit = match step.code {
            LOAD => {
                accumulator = word(step.k);
                continue;
            }
            AND => {
                accumulator &= step.k;
                continue;
            }
            RETURN if step.k == ALLOW => return Answer::Allow,
            RETURN if step.k == KILL => return Answer::Kill,
            RETURN => return Answer::Errno(i32::try_from(step.k & 0xFFFF).unwrap()),
            ALWAYS => {
                at += step.k as usize;
                continue;
            }
            AT_LEAST => accumulator >= step.k,
            EQUAL => accumulator == step.k,
            ANY_BIT => accumulator & step.k != 0,
            other => panic!("an instruction that the filter should not have: {other}"),
        };
        at += usize::from(if hit { step.jt } else { step.jf });
    }
}

const WORK: Calls = Calls::Work { reserve: true };
/// The calls of each level.
const LEVELS: [Calls; 3] = [Calls::Look, WORK, Calls::Work { reserve: false }];

const READ_ONLY: FilterConfig = FilterConfig {
    calls: Calls::Look,
    abi: 7,
    network: Network::None,
    mounted: false,
    pid_namespace: false,
};

fn check(config: FilterConfig, number: i64, arguments: &[u64], expected: Answer) {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let found = answer(config, ARCH, number, all);
    assert_eq!(
        found, expected,
        "call {number} with {arguments:?} at {config:?}"
    );
}

const WORKSPACE: FilterConfig = FilterConfig {
    calls: WORK,
    mounted: true,
    ..READ_ONLY
};

fn refused(config: FilterConfig, number: i64, arguments: &[u64]) {
    check(config, number, arguments, Answer::Errno(EPERM));
}

fn absent(config: FilterConfig, number: i64) {
    check(config, number, &[], Answer::Errno(ENOSYS));
}

fn allowed(config: FilterConfig, number: i64, arguments: &[u64]) {
    check(config, number, arguments, Answer::Allow);
}

#[test]
fn what_programs_live_on_is_allowed() {
    for number in [
        SYS_read, SYS_write, SYS_openat, SYS_execve, SYS_mmap, SYS_futex, SYS_wait4,
    ] {
        allowed(READ_ONLY, number, &[]);
    }
    allowed(READ_ONLY, SYS_clone, &[0x0100_0000 | SIGCHLD as u64]);
    allowed(READ_ONLY, SYS_kill, &[1]);
}

#[test]
fn attributes_are_changed_only_where_mounts_hold_them() {
    let without_mounts = FilterConfig {
        mounted: false,
        ..WORKSPACE
    };
    for number in [
        SYS_fchmodat,
        SYS_fchownat,
        SYS_utimensat,
        SYS_setxattr,
        452,
        463,
    ] {
        refused(READ_ONLY, number, &[]);
        refused(without_mounts, number, &[]);
        allowed(WORKSPACE, number, &[]);
    }
}

#[test]
fn what_is_not_listed_is_absent() {
    assert_eq!(answer(READ_ONLY, 0x4000_0003, 1, [0; 6]), Answer::Kill);
    let x32 = 0x4000_0000;
    let unknown = [x32, x32 + 41, 440, 471, 500, 0xFFFF_FFFF];
    let powers = [
        SYS_ptrace,
        SYS_mount,
        SYS_setns,
        SYS_keyctl,
        SYS_bpf,
        SYS_perf_event_open,
        SYS_userfaultfd,
        SYS_process_vm_readv,
        SYS_shmget,
        SYS_mq_open,
        SYS_clone3,
        SYS_openat2,
        SYS_io_uring_setup,
        SYS_pidfd_send_signal,
        SYS_pidfd_getfd,
        SYS_inotify_init1,
        SYS_inotify_add_watch,
        SYS_name_to_handle_at,
        SYS_memfd_secret,
        SYS_move_pages,
        SYS_io_setup,
        SYS_vmsplice,
        // `modify_ldt` exists on x86 only; `statmount`, `listmount`, `file_setattr`.
        #[cfg(target_arch = "x86_64")]
        SYS_modify_ldt,
        457,
        458,
        469,
    ];
    for number in unknown.into_iter().chain(powers) {
        absent(READ_ONLY, number);
        absent(WORKSPACE, number);
    }
    let work = [
        SYS_sendmsg,
        SYS_sendmmsg,
        SYS_recvmsg,
        SYS_setsockopt,
        SYS_memfd_create,
        SYS_personality,
        SYS_unshare,
        SYS_flock,
        SYS_landlock_create_ruleset,
    ];
    for number in work {
        absent(READ_ONLY, number);
        allowed(WORKSPACE, number, &[]);
    }
}

#[test]
fn nothing_is_opened_for_neither_reading_nor_writing() {
    for abi in 1..=9 {
        for calls in LEVELS {
            let config = FilterConfig {
                calls,
                abi,
                ..READ_ONLY
            };
            for flags in [O_ACCMODE, O_ACCMODE | O_TRUNC, O_ACCMODE | O_CLOEXEC] {
                refused(config, SYS_openat, &[0, 0, flags as u64]);
                #[cfg(target_arch = "x86_64")]
                refused(config, SYS_open, &[0, flags as u64]);
            }
            for flags in [O_RDONLY, O_WRONLY, O_RDWR] {
                allowed(config, SYS_openat, &[0, 0, (flags | O_CLOEXEC) as u64]);
            }
            check(config, SYS_openat2, &[], Answer::Errno(ENOSYS));
        }
    }
}

#[test]
fn locks_are_where_files_may_be_written() {
    for command in [F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW] {
        refused(READ_ONLY, SYS_fcntl, &[0, command as u64]);
        allowed(WORKSPACE, SYS_fcntl, &[0, command as u64]);
    }
    for command in [F_GETLK, F_OFD_GETLK, F_SETFL, F_DUPFD_CLOEXEC] {
        allowed(READ_ONLY, SYS_fcntl, &[0, command as u64]);
    }
}

#[test]
fn nothing_becomes_setuid() {
    let (create, nameless) = (O_CREAT as u64, O_TMPFILE as u64);
    for mode in [0o4755, 0o6755, S_IFREG as u64 | 0o4000] {
        refused(WORKSPACE, SYS_fchmod, &[0, mode]);
        refused(WORKSPACE, SYS_fchmodat, &[0, 0, mode]);
        refused(WORKSPACE, 452, &[0, 0, mode]);
        for config in [WORKSPACE, READ_ONLY] {
            refused(config, SYS_mknodat, &[0, 0, mode]);
            refused(config, SYS_openat, &[0, 0, create, mode]);
            refused(config, SYS_openat, &[0, 0, nameless, mode]);
            // There is no mode then: it is whatever was in the register.
            allowed(config, SYS_openat, &[0, 0, O_DIRECTORY as u64, mode]);
        }
    }
    for mode in [0o755, 0o2755, 0o1777] {
        allowed(WORKSPACE, SYS_fchmodat, &[0, 0, mode]);
        allowed(WORKSPACE, SYS_openat, &[0, 0, create, mode]);
    }
}

#[test]
fn the_limit_of_locks_stays_and_can_be_asked() {
    let locks = RLIMIT_LOCKS as u64;
    refused(READ_ONLY, SYS_setrlimit, &[locks]);
    for new in [8, 1 << 32] {
        refused(READ_ONLY, SYS_prlimit64, &[0, locks, new]);
        allowed(READ_ONLY, SYS_prlimit64, &[0, RLIMIT_CORE as u64, new]);
    }
    allowed(READ_ONLY, SYS_prlimit64, &[0, locks, 0, 8]);
    refused(READ_ONLY, SYS_prlimit64, &[4000, locks, 0, 8]);
}

#[test]
fn sockets_are_as_the_network_is() {
    let network = FilterConfig {
        network: Network::Machine,
        ..READ_ONLY
    };
    for family in [AF_UNIX, AF_NETLINK, AF_PACKET, AF_VSOCK, 38] {
        refused(READ_ONLY, SYS_socket, &[family as u64]);
        refused(network, SYS_socket, &[family as u64]);
    }
    refused(READ_ONLY, SYS_socket, &[AF_INET as u64]);
    allowed(network, SYS_socket, &[AF_INET as u64]);
    allowed(network, SYS_connect, &[]);
    refused(READ_ONLY, SYS_connect, &[]);
    for kind in [SOCK_STREAM, SOCK_STREAM | SOCK_CLOEXEC] {
        allowed(READ_ONLY, SYS_socketpair, &[AF_UNIX as u64, kind as u64]);
    }
    let packets = [AF_UNIX as u64, SOCK_SEQPACKET as u64];
    refused(READ_ONLY, SYS_socketpair, &packets);
    allowed(WORKSPACE, SYS_socketpair, &packets);
    // What is raw, AF_UNIX takes for datagrams.
    for kind in [
        SOCK_DGRAM | SOCK_NONBLOCK,
        SOCK_RAW,
        SOCK_RAW | SOCK_CLOEXEC,
    ] {
        refused(READ_ONLY, SYS_socketpair, &[AF_UNIX as u64, kind as u64]);
        refused(network, SYS_socketpair, &[AF_UNIX as u64, kind as u64]);
    }
    refused(
        READ_ONLY,
        SYS_socketpair,
        &[AF_INET as u64, SOCK_STREAM as u64],
    );
}

#[test]
fn urgent_data_is_not_supported() {
    let urgent = MSG_OOB as u64;
    let unsupported = || Answer::Errno(EOPNOTSUPP);
    for config in [READ_ONLY, WORKSPACE] {
        for number in [SYS_sendto, SYS_recvfrom] {
            check(config, number, &[0, 0, 0, urgent], unsupported());
            allowed(config, number, &[0, 0, 0, MSG_NOSIGNAL as u64]);
        }
    }
    check(WORKSPACE, SYS_sendmsg, &[0, 0, urgent], unsupported());
    check(WORKSPACE, SYS_recvmmsg, &[0, 0, 0, urgent], unsupported());
}

#[test]
fn what_only_looks_shares_no_memory_without_a_file() {
    let flags = |flags: i32| [0, 0, 0, flags as u64];
    for shared in [MAP_SHARED, MAP_SHARED_VALIDATE] {
        refused(READ_ONLY, SYS_mmap, &flags(shared | MAP_ANONYMOUS));
        allowed(WORKSPACE, SYS_mmap, &flags(shared | MAP_ANONYMOUS));
        allowed(READ_ONLY, SYS_mmap, &flags(shared));
    }
    allowed(READ_ONLY, SYS_mmap, &flags(MAP_PRIVATE | MAP_ANONYMOUS));
}

#[test]
fn a_filter_answers_for_no_other_process() {
    for config in [READ_ONLY, WORKSPACE] {
        allowed(config, SYS_seccomp, &[1, 0]);
        refused(config, SYS_seccomp, &[1, 1 << 3]);
    }
}

#[test]
fn requests_to_devices_are_a_list() {
    for request in [0x5401_u64, 0x5413, 0x8008_6601, 0x541B] {
        allowed(READ_ONLY, SYS_ioctl, &[0, request]);
        // The kernel looks at the low word only.
        allowed(READ_ONLY, SYS_ioctl, &[0, request | 0xF_0000_0000]);
    }
    for request in [
        0x5412_u64,
        0x541C,
        0x4008_6602,
        0x401C_5820,
        0x8901,
        0x5000_940E,
    ] {
        check(READ_ONLY, SYS_ioctl, &[0, request], Answer::Errno(ENOTTY));
        check(
            READ_ONLY,
            SYS_ioctl,
            &[0, request | 0xF_0000_0000],
            Answer::Errno(ENOTTY),
        );
    }
}

#[test]
fn every_namespace_is_refused_alone_and_together() {
    for flag in [
        0x2_0000_u64,
        0x200_0000,
        0x400_0000,
        0x800_0000,
        0x1000_0000,
        0x2000_0000,
        0x4000_0000,
    ] {
        refused(READ_ONLY, SYS_clone, &[flag | SIGCHLD as u64]);
        refused(WORKSPACE, SYS_unshare, &[flag]);
    }
    refused(WORKSPACE, SYS_unshare, &[0x80]);
    allowed(WORKSPACE, SYS_unshare, &[CLONE_FS as u64]);
}

#[test]
fn no_program_takes_much_of_what_all_share() {
    for calls in LEVELS {
        let config = FilterConfig { calls, ..WORKSPACE };
        refused(config, SYS_fcntl, &[0, F_SETPIPE_SZ as u64]);
        let no_memory = || Answer::Errno(ENOMEM);
        let huge = (MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB) as u64;
        check(config, SYS_mmap, &[0, 0, 0, huge], no_memory());
        // Programs take longer to write than to reserve.
        let room = match calls {
            WORK => Answer::Allow,
            _ => Answer::Errno(EOPNOTSUPP),
        };
        check(config, SYS_fallocate, &[3, 0, 0, 1 << 30], room);
    }
    let no_memory = Answer::Errno(ENOMEM);
    check(
        WORKSPACE,
        SYS_memfd_create,
        &[0, MFD_HUGETLB.into()],
        no_memory,
    );
    allowed(WORKSPACE, SYS_memfd_create, &[0, MFD_CLOEXEC.into()]);
    // The answer is success, but nothing happens.
    for option in [SO_SNDBUF, SO_RCVBUF] {
        let arguments = [3, SOL_SOCKET as u64, option as u64];
        check(WORKSPACE, SYS_setsockopt, &arguments, Answer::Errno(0));
    }
    for (level, option) in [(SOL_SOCKET, SO_REUSEADDR), (IPPROTO_TCP, SO_SNDBUF)] {
        allowed(WORKSPACE, SYS_setsockopt, &[3, level as u64, option as u64]);
    }
}

#[test]
fn the_open_files_of_a_process_can_be_counted() {
    let thread = CLONE_VM | CLONE_THREAD;
    for config in [READ_ONLY, WORKSPACE] {
        refused(config, SYS_clone, &[thread as u64]);
        allowed(config, SYS_clone, &[(thread | CLONE_FILES) as u64]);
        allowed(config, SYS_clone, &[(CLONE_VM | CLONE_VFORK) as u64]);
        refused(config, SYS_close_range, &[3, 9, CLOSE_RANGE_UNSHARE.into()]);
        allowed(config, SYS_close_range, &[3, 9, CLOSE_RANGE_CLOEXEC.into()]);
        for (dumpable, answer) in [(0, Answer::Errno(0)), (1, Answer::Allow)] {
            check(
                config,
                SYS_prctl,
                &[PR_SET_DUMPABLE as u64, dumpable],
                answer,
            );
        }
    }
    refused(WORKSPACE, SYS_unshare, &[CLONE_FILES as u64]);
}

#[test]
fn priorities_are_one_s_own() {
    allowed(READ_ONLY, SYS_setpriority, &[0, 0, 5]);
    refused(READ_ONLY, SYS_setpriority, &[0, 4000, 5]);
    // By a user's number 0 is oneself too, with all the processes one has.
    refused(READ_ONLY, SYS_setpriority, &[2, 0, 5]);
    allowed(READ_ONLY, SYS_ioprio_set, &[1, 0]);
    refused(READ_ONLY, SYS_ioprio_set, &[3, 0]);
    refused(READ_ONLY, SYS_fcntl, &[0, F_SETLEASE as u64]);
    allowed(READ_ONLY, SYS_fcntl, &[0, F_GETFD as u64]);
    allowed(READ_ONLY, SYS_prlimit64, &[0]);
    refused(READ_ONLY, SYS_prlimit64, &[4000]);
}

/// C libraries name a thread by its number, also the calling one.
#[test]
fn threads_are_scheduled_where_a_command_sees_only_its_own() {
    let alone = FilterConfig {
        pid_namespace: true,
        ..READ_ONLY
    };
    for (number, arguments) in [
        (SYS_sched_setaffinity, &[7_u64][..]),
        (SYS_sched_setscheduler, &[7]),
        (SYS_sched_setparam, &[7]),
        (SYS_sched_setattr, &[7]),
        (SYS_setpriority, &[0, 7]),
        (SYS_ioprio_set, &[1, 7]),
    ] {
        refused(READ_ONLY, number, arguments);
        allowed(alone, number, arguments);
    }
    // A user's processes, and the limits of another process, such as the first of the namespace.
    refused(alone, SYS_setpriority, &[2, 0]);
    refused(alone, SYS_ioprio_set, &[3, 0]);
    refused(alone, SYS_prlimit64, &[7]);
}

#[test]
fn an_older_landlock_leaves_more_to_the_filter() {
    let version = |abi| FilterConfig { abi, ..READ_ONLY };
    let emptying = (O_RDONLY | O_TRUNC | O_CLOEXEC) as u64;
    let writing = (O_WRONLY | O_TRUNC) as u64;
    for abi in [1, 2] {
        refused(version(abi), SYS_openat, &[0, 0, emptying]);
        allowed(version(abi), SYS_openat, &[0, 0, writing]);
        allowed(version(abi), SYS_openat, &[0, 0, O_RDONLY as u64]);
        refused(version(abi), SYS_truncate, &[]);
    }
    allowed(version(3), SYS_openat, &[0, 0, emptying]);
    for abi in 1..=5 {
        refused(version(abi), SYS_kill, &[4000, SIGTERM as u64]);
        refused(version(abi), SYS_kill, &[u64::MAX, SIGTERM as u64]);
        allowed(version(abi), SYS_kill, &[0, SIGTERM as u64]);
        refused(version(abi), SYS_tgkill, &[1, 1, SIGKILL as u64]);
        allowed(version(abi), SYS_tgkill, &[1, 1, SIGURG as u64]);
        refused(version(abi), SYS_fcntl, &[0, F_SETOWN as u64]);
        allowed(version(abi), SYS_fcntl, &[0, F_GETFL as u64]);
    }
    allowed(version(6), SYS_tgkill, &[1, 1, SIGKILL as u64]);
    let alone = FilterConfig {
        pid_namespace: true,
        ..version(1)
    };
    allowed(alone, SYS_kill, &[2, SIGTERM as u64]);
}

#[test]
fn every_jump_lands_inside() {
    for abi in 1..=9 {
        for (network, mounted) in [(Network::None, false), (Network::Machine, true)] {
            for calls in LEVELS {
                let code = program(FilterConfig {
                    calls,
                    abi,
                    network,
                    mounted,
                    pid_namespace: mounted,
                });
                assert!(code.len() < 4096);
                for (at, step) in code.iter().enumerate() {
                    let far = if step.code == ALWAYS {
                        step.k as usize
                    } else {
                        usize::from(step.jt.max(step.jf))
                    };
                    let farthest = at + 1 + far;
                    assert!(farthest < code.len() || step.code == RETURN, "step {at}");
                }
            }
        }
    }
}

#[test]
fn every_call_is_found_by_the_search() {
    let refusals = arguments::refusals(READ_ONLY);
    let SystemCalls {
        allowed: listed,
        refused: known,
    } = SystemCalls::of(READ_ONLY);
    for number in listed
        .iter()
        .filter(|it| refusals.iter().all(|no| no.call != **it))
    {
        allowed(READ_ONLY, *number, &[u64::MAX; 6]);
    }
    for number in known {
        refused(READ_ONLY, number, &[]);
    }
    for refusal in refusals.iter().filter(|it| listed.contains(&it.call)) {
        // No argument is in all the lists, and these have every bit that a mask asks for.
        let hit = match refusal.when {
            Condition::Always | Condition::NotIn(..) => u64::MAX,
            Condition::AnyBit(_, mask) => mask.into(),
            Condition::Masked(_, _, value) => value.into(),
            Condition::In(_, values) => values[0].into(),
            Condition::Some(_) => 1,
        };
        let mut arguments = [hit; 6];
        match refusal.and {
            Condition::AnyBit(argument, mask) => arguments[usize::from(argument)] = mask.into(),
            Condition::Some(argument) => arguments[usize::from(argument)] = 1,
            Condition::In(argument, values) => {
                arguments[usize::from(argument)] = values[0].into();
            }
            _ => {}
        }
        let expected = Answer::Errno(refusal.errno);
        check(READ_ONLY, refusal.call, &arguments, expected);
    }
}
