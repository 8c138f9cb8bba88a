use super::*;
use crate::confinement::level::{Calls, Network};

fn launcher(support: SandboxSupport) -> Launcher {
    Launcher::with_support("/bin/co".into(), "/nonexistent".into(), Vec::new(), support)
}

fn whole() -> SandboxSupport {
    SandboxSupport {
        abi: Some(7),
        seccomp: true,
        namespaces: true,
        pid_namespaces: true,
        own_proc: true,
        trials: true,
        own_network: true,
        why: None,
        why_no_own_network: None,
        why_no_trials: None,
    }
}

fn read_only() -> Confinement {
    Confinement::ReadOnly {
        workspace: concat!(env!("CARGO_MANIFEST_DIR"), "/src/sandbox").into(),
    }
}

fn plan(wrapped: &ConfinedCommand) -> Plan {
    match Task::read(&wrapped.argv[2]) {
        Some(Task::Start(plan)) => *plan,
        other => panic!("no plan but {other:?}"),
    }
}

#[test]
fn the_command_follows_the_launcher_and_its_plan() {
    let mut env = Vec::new();
    let argv = vec!["/bin/ls".into(), "-l".into()];
    let wrapped = launcher(whole())
        .wrap(read_only().level().unwrap(), argv, &mut env, Path::new("/"))
        .unwrap();
    assert_eq!(wrapped.level, "read-only");
    assert_eq!(wrapped.argv[..2], ["/bin/co", LAUNCH]);
    assert_eq!(wrapped.argv[3..], ["/bin/ls", "-l"]);
    let confined = plan(&wrapped).confined.unwrap();
    assert_eq!(
        (confined.calls, confined.abi, confined.network),
        (Calls::Look, 7, Network::None)
    );
}

#[test]
fn commands_that_only_read_share_an_empty_directory_to_mount_on() {
    let launcher = launcher(whole());
    let start = || {
        let argv = vec!["/bin/ls".into()];
        let wrapped = launcher.wrap(
            read_only().level().unwrap(),
            argv,
            &mut Vec::new(),
            Path::new("/"),
        );
        wrapped.unwrap().tmp.unwrap().path().to_owned()
    };
    let path = start();
    assert_eq!(start(), path);
    assert!(path.is_dir());
    std::fs::remove_dir(&path).unwrap();
    let other = start();
    assert!(other.is_dir());
    drop(launcher);
    assert!(!other.exists());
}

#[test]
fn the_environment_loses_what_leads_out() {
    let mut env: Vec<(OsString, OsString)> = [
        "NVIM",
        "NVIM_LISTEN_ADDRESS",
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "TMPDIR",
        "TMP",
        "PATH",
    ]
    .map(|name| (name.into(), "x".into()))
    .to_vec();
    clean(&mut env, Path::new("/private"));
    assert_eq!(
        env,
        [
            ("PATH".into(), "x".into()),
            ("TMPDIR".into(), "/private".into())
        ]
    );
}

#[test]
fn a_plain_command_is_limited_where_nothing_can_be_confined() {
    let support = SandboxSupport::none("nothing");
    let request = LaunchRequest {
        ports: &[],
        limits: ProcessLimits {
            open_files: Some(64),
            ..ProcessLimits::default()
        },
        cwd: Path::new("/"),
        tmp_size: None,
        group: None,
        secrets: None,
        waits: false,
        terminal: false,
    };
    let argv = vec!["ls".into()];
    let wrapped = launcher(support).limit(&request, argv).unwrap();
    assert_eq!(wrapped.level, "none");
    let plan = plan(&wrapped);
    assert_eq!((plan.confined, plan.limits), (None, request.limits));
    assert!(wrapped.tmp.is_none());
}

#[test]
fn words_say_what_does_not_hold() {
    let words = |support: SandboxSupport| support.words();
    assert_eq!(
        words(whole()),
        "Landlock ABI 7, seccomp, mount and PID namespace"
    );
    let masked = SandboxSupport {
        abi: Some(4),
        own_proc: false,
        ..whole()
    };
    assert_eq!(
        words(masked),
        "Landlock ABI 4, seccomp, mount and PID namespace with the machine's /proc"
    );
    let old = SandboxSupport {
        abi: Some(2),
        namespaces: false,
        pid_namespaces: false,
        ..whole()
    };
    assert_eq!(
        words(old),
        "Landlock ABI 2, seccomp, no namespaces: commands at the workspace level make nothing new at its top, and can read its secrets, no signals but to one's own group"
    );
    let half = SandboxSupport {
        seccomp: false,
        why: Some("no filter".into()),
        ..whole()
    };
    assert_eq!(words(half.clone()), "no sandbox: no filter");
    assert!(half.check().is_err());
}
