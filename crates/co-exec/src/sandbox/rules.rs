//! Landlock: the access rights of each version, and the domain of a command.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    PathBeneath, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::beneath;

use super::mounts;
use super::plan::{ConfinedPlan, Grant, PathBytes, Right};
use crate::confinement::level::Network;

/// The access rights that a Landlock domain handles. The kernel refuses each access that needs a handled right, unless a grant
/// allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HandledRights {
    pub files: BitFlags<AccessFs>,
    pub ports: BitFlags<AccessNet>,
    pub scopes: BitFlags<Scope>,
}

impl HandledRights {
    pub(super) fn new(abi: i32, network: Network) -> Self {
        let abi = ABI::from(abi);
        let ports = match network {
            Network::None => AccessNet::from_all(abi),
            Network::Machine | Network::Own => BitFlags::EMPTY,
        };
        Self {
            files: AccessFs::from_all(abi),
            ports,
            scopes: Scope::from_all(abi),
        }
    }
}

/// Returns the access rights of Landlock that the right of a grant stands for.
pub(super) fn rights(right: Right, abi: i32) -> BitFlags<AccessFs> {
    let known = AccessFs::from_all(ABI::from(abi));
    let see = AccessFs::ReadFile | AccessFs::ReadDir;
    let change = AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::RemoveDir
        | AccessFs::RemoveFile
        | AccessFs::MakeDir
        | AccessFs::MakeReg
        | AccessFs::MakeSym
        | AccessFs::MakeFifo
        | AccessFs::MakeSock
        | AccessFs::Refer;
    let wanted = match right {
        Right::List => AccessFs::ReadDir.into(),
        Right::Read => see | AccessFs::Execute,
        // The filter has the list of allowed requests.
        Right::Device => {
            AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev
        }
        Right::Write => see | change | AccessFs::Execute,
    };
    wanted & known
}

/// Restricts this process, and all its descendants, to a Landlock domain.
///
/// # Errors
/// The kernel does not enforce all rules.
pub(super) fn enter(plan: &ConfinedPlan) -> Result<(), String> {
    let handled = HandledRights::new(plan.abi, plan.network);
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset = ruleset
        .handle_access(handled.files)
        .map_err(|e| e.to_string())?;
    if !handled.ports.is_empty() {
        ruleset = ruleset
            .handle_access(handled.ports)
            .map_err(|e| e.to_string())?;
    }
    if !handled.scopes.is_empty() {
        ruleset = ruleset.scope(handled.scopes).map_err(|e| e.to_string())?;
    }
    let mut domain = ruleset
        .create()
        .map_err(|e| e.to_string())?
        // A file has fewer rights than a directory. The library removes those that do not apply.
        .set_compatibility(CompatLevel::BestEffort);
    let mounts = plan.mounts.iter();
    let downloads = mounts.flat_map(mounts::writable_downloads);
    let downloads = downloads.map(|path| Grant(Right::Write, path.clone()));
    for Grant(right, path) in plan.grants.iter().cloned().chain(downloads) {
        // A path that no longer exists needs no grant.
        let Some(place) = open_granted(right, &path.0) else {
            continue;
        };
        let rule = PathBeneath::new(place, rights(right, plan.abi));
        domain = domain.add_rule(rule).map_err(|e| e.to_string())?;
    }
    let domain = add_opened(domain, plan).map_err(|e| e.to_string())?;
    let status = domain.restrict_self().map_err(|e| e.to_string())?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err("the kernel did not enforce it".to_owned());
    }
    Ok(())
}

/// Opens the path of a grant. Except for devices, the path must be canonical: if a component has become a symbolic link, another
/// command has replaced the component, so the path is not granted.
fn open_granted(right: Right, path: &Path) -> Option<OwnedFd> {
    if right == Right::Device {
        let how = OFlags::PATH | OFlags::CLOEXEC;
        return openat(CWD, path, how, Mode::empty()).ok();
    }
    beneath::open_o_path(path).ok()
}

/// Adds a rule for each readable entry of the opened directories. Opens each entry relative to the descriptor of its directory.
/// This is faster than opening its whole path, and it is safe if a directory is renamed meanwhile.
fn add_opened(
    mut domain: RulesetCreated,
    plan: &ConfinedPlan,
) -> Result<RulesetCreated, landlock::RulesetError> {
    let read = rights(Right::Read, plan.abi);
    let mut above: Vec<Option<OwnedFd>> = Vec::new();
    for dir in &plan.opened {
        above.truncate(dir.depth);
        let opened = match above.last() {
            None => open(CWD, &dir.name, OFlags::DIRECTORY),
            Some(parent) => parent
                .as_ref()
                .and_then(|parent| open(parent.as_fd(), &dir.name, OFlags::DIRECTORY)),
        };
        if let Some(opened) = &opened {
            let dirs = dir.dirs.iter().map(|name| (name, OFlags::DIRECTORY));
            let files = dir.files.iter().map(|name| (name, OFlags::empty()));
            for (name, kind) in dirs.chain(files) {
                if let Some(place) = open(opened.as_fd(), name, kind) {
                    domain = domain.add_rule(PathBeneath::new(place, read))?;
                }
            }
        }
        above.push(opened);
    }
    Ok(domain)
}

/// Opens an entry of a directory without following a symbolic link. Returns `None` if the entry no longer exists, because it then
/// needs no rule.
fn open(dir: BorrowedFd<'_>, name: &PathBytes, kind: OFlags) -> Option<OwnedFd> {
    let how = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC | kind;
    openat(dir, &name.0, how, Mode::empty()).ok()
}

/// Returns the Landlock version of this kernel, by restricting this process to a domain.
///
/// # Errors
/// Landlock is not available. The error has the reason.
pub(super) fn probe() -> Result<u32, String> {
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(|e| e.to_string())?;
    match status.landlock {
        LandlockStatus::NotEnabled => Err(
            "the kernel has Landlock but it is not among the security modules in its lsm= option"
                .to_owned(),
        ),
        LandlockStatus::NotImplemented => Err("the kernel has no Landlock".to_owned()),
        LandlockStatus::Available { .. } if status.ruleset == RulesetStatus::NotEnforced => {
            Err("the kernel did not enforce Landlock".to_owned())
        }
        LandlockStatus::Available { effective_abi, .. } => Ok(effective_abi as u32),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_in_the_place_of_a_grant_gets_none() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(real.join("a/b")).unwrap();
        symlink("a", real.join("link")).unwrap();
        for right in [Right::List, Right::Read, Right::Write] {
            let is_granted = |path: &str| open_granted(right, &real.join(path)).is_some();
            assert!(is_granted("a/b") && is_granted(""));
            assert!(!is_granted("link") && !is_granted("link/b") && !is_granted("none"));
        }
        assert!(open_granted(Right::Device, Path::new("/proc/self/fd/0")).is_some());
    }

    #[test]
    fn each_version_handles_what_it_knows() {
        let files = |abi| HandledRights::new(abi, Network::None).files;
        assert!(!files(1).contains(AccessFs::Refer));
        assert!(files(2).contains(AccessFs::Refer) && !files(2).contains(AccessFs::Truncate));
        assert!(files(3).contains(AccessFs::Truncate) && !files(4).contains(AccessFs::IoctlDev));
        assert!(files(5).contains(AccessFs::IoctlDev) && !files(8).contains(AccessFs::ResolveUnix));
        assert!(files(9).contains(AccessFs::ResolveUnix));
        assert!(HandledRights::new(3, Network::None).ports.is_empty());
        assert_eq!(
            HandledRights::new(4, Network::None).ports,
            AccessNet::BindTcp | AccessNet::ConnectTcp
        );
        assert!(HandledRights::new(4, Network::Machine).ports.is_empty());
        assert!(HandledRights::new(5, Network::None).scopes.is_empty());
        assert_eq!(
            HandledRights::new(6, Network::Machine).scopes,
            Scope::AbstractUnixSocket | Scope::Signal
        );
    }

    #[test]
    fn no_grant_gives_what_harms() {
        for abi in 1..=9 {
            let write = rights(Right::Write, abi);
            let device = AccessFs::MakeChar
                | AccessFs::MakeBlock
                | AccessFs::IoctlDev
                | AccessFs::ResolveUnix;
            assert!(!write.intersects(device), "version {abi}");
            assert!(
                HandledRights::new(abi, Network::Machine)
                    .files
                    .contains(write),
                "version {abi}"
            );
            let read = rights(Right::Read, abi);
            assert_eq!(
                read,
                AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute
            );
            assert_eq!(rights(Right::List, abi), BitFlags::from(AccessFs::ReadDir));
        }
    }
}
