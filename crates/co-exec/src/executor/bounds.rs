//! The bounds on the resources that a command may use. This module checks the bounds that neither the kernel nor the reader of
//! the output enforces.
//!
//! | bound | counted by | where | how often | reported as |
//! |---|---|---|---|---|
//! | time | a timer | `process::time_limit` | once | `timed_out` |
//! | output | its reader | `output::reader` | each read | `flooded` |
//! | memory | the cgroup, or this module | the kernel, or `process::memory` | always, or each check | [`ExceededLimit::Memory`] |
//! | processes and threads | the cgroup, or here | the kernel, or here | always, or each check | [`ExceededLimit::Processes`] |
//! | files of `TMPDIR`, of a server's home, of a layer, of caches | a walk, and the free room | `process::disk_checks` | after a pause of its length | `Disk`, `Places`, `Changes`, `Caches` and their files |
//! | removed files that are still open | `/proc/PID/fd` | `process::open_files` | each check | `Disk`, `Places`, `Changes` |
//! | epoll, open files, sockets | `/proc/PID/fd` | [`QUOTAS`] | each check | [`Quota`] |
//! | buffers of the network | `/proc/net/sockstat` | `process::shared_counters` | each check | [`Quota::NetworkBuffers`] |
//! | of one process: processor time, open files, size of a file, signals | the kernel | `limits::ProcessLimits` | always | the process gets an error or a signal |
//! | in a container: memory, processes, processors, `/tmp` | the engine | `container::create` | always | [`ExceededLimit::Memory`], or an error |
//!
//! The first check comes 50 ms after the start. The pause between checks doubles each time, up to half a second. The limits are
//! in [`limits`](crate::limits); the settings with their defaults are in `settings`.

use std::path::Path;
use std::time::Duration;

use crate::limits::{CONFINED_OPEN_FILES, CommandLimits, ExceededLimit, Quota};
use crate::process::memory;
use crate::process::open_files::OpenFiles;
use crate::process::procfs::Process;
use crate::process::shared_counters::{self, SharedCounters};
use crate::sandbox::ConfinedCommand;

/// The pause before the first check. Each later pause is twice as long.
const FIRST_INTERVAL: Duration = Duration::from_millis(50);
/// The longest pause between two checks of the limits.
const MAX_INTERVAL: Duration = Duration::from_millis(500);
/// The longest pause before the next check if the last check found epoll descriptors.
const MAX_EPOLL_INTERVAL: Duration = Duration::from_millis(100);

type QuotaRow = (fn(&OpenFiles) -> u64, u64, fn(u64) -> Quota);

/// The quotas on open files: a function that counts the files, the most that a command may have, and the quota to report.
///
/// All programs of a user together may watch only some 220 files for each megabyte of memory, and Neovim aborts if it cannot
/// watch a file. All programs of a user together may have only a certain number of descriptors in flight in sockets: the limit of
/// open files, often 1024. An epoll descriptor can watch one file under many descriptor numbers. While an epoll descriptor is in
/// flight in a socket, `/proc` does not show it. To inspect a descriptor takes a microsecond.
const QUOTAS: [QuotaRow; 5] = [
    (|open| open.epolls, 1000, Quota::Epolls),
    (|open| open.watches, 50_000, Quota::Watches),
    (
        |open| open.most_watched,
        CONFINED_OPEN_FILES,
        Quota::WatchesOfOne,
    ),
    (|open| open.descriptors, 1 << 15, Quota::Descriptors),
    (|open| open.waiting, 500, Quota::WaitingDescriptors),
];

/// The magic number of overlay file systems (`linux/magic.h`).
const OVERLAY: i64 = 0x794c_7630;

/// The state of the checks of one command.
#[derive(Debug)]
pub(crate) struct LimitChecks {
    limits: CommandLimits,
    at_start: SharedCounters,
    pause: Duration,
    has_epolls: bool,
}

impl LimitChecks {
    pub(crate) fn new(limits: CommandLimits) -> Self {
        Self {
            limits,
            at_start: if limits.shared {
                SharedCounters::read()
            } else {
                SharedCounters::default()
            },
            pause: FIRST_INTERVAL,
            has_epolls: false,
        }
    }

    /// Waits until the next check is due. If there is no limit to check, waits forever.
    pub(crate) async fn next(&mut self) {
        if self.limits.is_empty() {
            return std::future::pending().await;
        }
        tokio::time::sleep(self.pause).await;
        let most = if self.has_epolls {
            MAX_EPOLL_INTERVAL
        } else {
            MAX_INTERVAL
        };
        self.pause = (self.pause * 2).min(most);
    }

    /// Returns a limit that the processes `members` exceed. `by_kernel` is true if the kernel enforces the limits of memory and
    /// processes, which are then not checked.
    pub(crate) fn exceeded(
        &mut self,
        members: &[Process],
        confined: Option<&ConfinedCommand>,
        by_kernel: bool,
    ) -> Option<ExceededLimit> {
        let limits = self.limits;
        let threads: u64 = members.iter().map(|process| process.threads).sum();
        if let Some(most) = limits
            .processes
            .filter(|most| threads > *most && !by_kernel)
        {
            return Some(ExceededLimit::Processes(most));
        }
        let open = OpenFiles::of(members);
        self.has_epolls = open.epolls > 0;
        let files = self.of_nameless_files(&open, confined);
        let shared = || limits.shared.then(|| self.quota(&open)).flatten();
        let quota = files.or_else(|| shared().map(ExceededLimit::Quota));
        // To measure the memory of many processes takes long, if each of them gets as much processor time as this one.
        let memory = limits.memory.filter(|_| !by_kernel);
        quota.or_else(|| self.of_memory(memory?, members, &open, confined))
    }

    fn of_nameless_files(
        &self,
        open: &OpenFiles,
        confined: Option<&ConfinedCommand>,
    ) -> Option<ExceededLimit> {
        let confined = confined?;
        let over = |most: Option<u64>, used: u64| most.filter(|most| used > *most);
        let beside = |dir: Option<&Path>| dir.map_or(0, |dir| open.nameless_beside(dir));
        let CommandLimits {
            disk,
            places,
            changes,
            ..
        } = self.limits;
        let disk = over(disk, beside(confined.tmp_on_disk())).map(ExceededLimit::Disk);
        let in_places = confined.limited_places().iter();
        let in_places = in_places.map(|it| beside(Some(it))).max();
        let in_places = over(places, in_places.unwrap_or(0)).map(ExceededLimit::Places);
        let disk = disk.or(in_places);
        // Those in caches count too.
        let changes = || over(changes, open.nameless_on(OVERLAY)).map(ExceededLimit::Changes);
        disk.or_else(changes)
    }

    /// Returns the quota on a shared resource that the command exceeds.
    fn quota(&self, open: &OpenFiles) -> Option<Quota> {
        let exceeded =
            |(count, most, quota): &QuotaRow| (count(open) > *most).then(|| quota(*most));
        if let Some(quota) = QUOTAS.iter().find_map(exceeded) {
            return Some(quota);
        }
        if !shared_counters::can_watch() {
            return Some(Quota::LastWatch);
        }
        let now = SharedCounters::read();
        let most = now.network_share();
        (now.network_since(self.at_start) > most).then_some(Quota::NetworkBuffers(most))
    }

    /// Returns the memory limit if the command exceeds it. Counts files in memory too.
    fn of_memory(
        &self,
        most: u64,
        members: &[Process],
        open: &OpenFiles,
        confined: Option<&ConfinedCommand>,
    ) -> Option<ExceededLimit> {
        let threads: Vec<i32> = members.iter().map(Process::running_thread).collect();
        let directory = confined.and_then(ConfinedCommand::memory);
        let files = directory.and_then(|dir| memory::of_directory(dir, &threads));
        let left = most.checked_sub(files.unwrap_or(0));
        let over = left.is_none_or(|left| memory::exceeds(&threads, open.sockets, left));
        // Where nothing else is refused, it may have shared memory that none of its processes maps.
        let hides = confined.is_some_and(|it| it.may_share_memory);
        let shared = || SharedCounters::read().shared_memory_since(self.at_start);
        let over = over || hides && shared() > most;
        over.then_some(ExceededLimit::Memory(most))
    }
}
