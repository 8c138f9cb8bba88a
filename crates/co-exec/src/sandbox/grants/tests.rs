use std::fs;

use TestedLevel::{ReadOnly, Workspace};

use super::super::plan::OpenedDirectory;
use super::workspace_paths::MAX_SECRET_RULES;
use super::*;
use crate::confinement::level::{GrantedPlaces, Network, ShownSecrets};
use crate::confinement::{Confinement, ServerAccess};
use crate::error::refusal::HidingRefusal;
use crate::{secrets, test_files};

#[derive(Clone, Copy)]
enum TestedLevel {
    ReadOnly,
    Workspace,
}

impl TestedLevel {
    fn of(self, workspace: &Path) -> Confinement {
        let workspace = workspace.to_owned();
        match self {
            ReadOnly => Confinement::ReadOnly { workspace },
            Workspace => Confinement::Workspace {
                workspace,
                network: Network::None,
                shown: ShownSecrets::Nothing,
            },
        }
    }
}

struct Home {
    top: tempfile::TempDir,
    real: PathBuf,
}

impl Home {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let real = top.path().canonicalize().unwrap();
        let home = Self { top, real };
        for name in [
            ".ssh/id",
            ".cargo/bin/cargo",
            ".cargo/credentials.toml",
            ".config/git/config",
            ".config/git/credentials",
            ".gitconfig",
            "work/src/main.rs",
            "work/.git/HEAD",
            "work/.git/config",
            "work/.git/objects/x",
            "work/.git/refs/x",
            "work/.envrc",
            "state/co/session",
            "notes",
        ] {
            test_files::write(&home.real, name, "");
        }
        home
    }

    fn grants(&self) -> Grants {
        Grants::new(self.top.path().to_owned(), vec![self.real.join("state/co")])
    }

    fn find(
        &self,
        grants: &Grants,
        below: &str,
        level: TestedLevel,
        namespaces: bool,
    ) -> Result<FoundPaths, SandboxRefusal> {
        let workspace = self.real.join(below);
        let path = OsString::from("/usr/bin:relative::/");
        find(grants, &workspace, path, level, namespaces)
    }

    /// Returns what `level` grants in the workspace `work`, with namespaces.
    fn found(&self, level: TestedLevel) -> FoundPaths {
        self.find(&self.grants(), "work", level, true).unwrap()
    }

    /// The paths of one right, below the home.
    fn below(&self, found: &FoundPaths, right: Right) -> Vec<String> {
        let ours = found.grants.iter().filter(|grant| grant.0 == right);
        ours.filter_map(|grant| grant.1.0.strip_prefix(&self.real).ok())
            .map(|path| path.to_str().unwrap().to_owned())
            .collect()
    }
}

fn find(
    grants: &Grants,
    workspace: &Path,
    path: OsString,
    level: TestedLevel,
    namespaces: bool,
) -> Result<FoundPaths, SandboxRefusal> {
    let survey = secrets::survey(workspace);
    grants.find(&GrantRequest {
        level: level.of(workspace).level().unwrap(),
        tmp: Path::new("/tmp/private"),
        tmp_size: 1 << 20,
        env: &[("PATH".into(), path)],
        namespaces,
        survey: Some(&survey),
    })
}

#[test]
fn read_only_reads_the_workspace_and_toolchains_and_no_credentials() {
    let home = Home::new();
    fs::remove_file(home.real.join("work/.envrc")).unwrap();
    let found = home.found(ReadOnly);
    let reads = home.below(&found, Right::Read);
    let tools = [".cargo/bin", ".config/git/config", ".gitconfig"];
    assert_eq!(reads, [&tools[..], &["work"]].concat());
    assert!(found.opened.is_empty());
    let tmp = PathBytes::from("/tmp/private");
    let writes = found.grants.iter().filter(|it| it.0 == Right::Write);
    assert!(writes.eq([&Grant(Right::Write, tmp.clone())]));
    let mounts = found.mounts.unwrap();
    assert_eq!(mounts.writable, []);
    assert_eq!(mounts.memory.unwrap().path, tmp);
    assert_eq!(mounts.hidden.paths, []);
    assert!(!found.grants.iter().any(|grant| grant.1.0 == Path::new("/")));
}

#[test]
fn only_directories_with_a_secret_are_granted_entry_by_entry() {
    let home = Home::new();
    for name in ["work/.env", "work/app/deep/x.pem", "work/app/main.rs"] {
        test_files::write(&home.real, name, "x");
    }
    let found = home.found(ReadOnly);
    let mut told: Vec<_> = found
        .opened
        .iter()
        .map(|dir| {
            let text = |names: &[PathBytes]| {
                let names = names.iter().map(|it| it.0.display().to_string());
                let mut names: Vec<_> = names.collect();
                names.sort();
                names.join(" ")
            };
            let name = dir.name.0.file_name().unwrap().to_str().unwrap();
            format!(
                "{} {name}: {} | {}",
                dir.depth,
                text(&dir.dirs),
                text(&dir.files)
            )
        })
        .collect();
    told[1..].sort();
    let wanted = ["0 work: .git src | ", "1 app:  | main.rs", "2 deep:  | "];
    assert_eq!(told, wanted);
    let work = PathBytes::from(&home.real.join("work"));
    assert!(found.grants.contains(&Grant(Right::List, work.clone())));
    assert!(!found.grants.contains(&Grant(Right::Read, work)));
}

#[test]
fn secrets_that_take_too_many_rules_are_a_reason_to_ask() {
    let home = Home::new();
    for number in 0..MAX_SECRET_RULES {
        fs::write(home.real.join(format!("work/{number}")), "").unwrap();
    }
    fs::remove_file(home.real.join("work/.envrc")).unwrap();
    let grants = home.grants();
    let level = ReadOnly;
    assert!(home.find(&grants, "work", level, true).is_ok());
    fs::write(home.real.join("work/.env"), "x").unwrap();
    let refused = home.find(&grants, "work", level, true).unwrap_err();
    let many = |refused: &SandboxRefusal| matches!(refused, SandboxRefusal::Unready(HidingRefusal::TooManyRules { rules, .. }) if *rules > MAX_SECRET_RULES);
    assert!(many(&refused), "{refused}");
    let work = home.real.join("work");
    let refused = grants
        .check(&work, &[], &secrets::survey(&work))
        .unwrap_err();
    assert!(many(&refused), "{refused}");
    let write = Workspace;
    assert!(home.find(&grants, "work", write, true).is_ok());
}

#[test]
fn a_workspace_that_was_not_surveyed_whole_is_a_reason_to_ask() {
    let home = Home::new();
    let work = home.real.join("work");
    let refused = home.grants().check(&work, &[], &Survey::default());
    let unready = HidingRefusal::NotSurveyed(work);
    assert_eq!(refused, Err(SandboxRefusal::Unready(unready)));
}

#[test]
fn the_workspace_is_written_whole_where_mounts_hold_the_rest() {
    let home = Home::new();
    let found = home.found(Workspace);
    assert_eq!(home.below(&found, Right::Write), ["work"]);
    let mounts = found.mounts.unwrap();
    let work = home.real.join("work");
    assert_eq!(
        mounts.writable,
        [PathBytes::from(&work), PathBytes::from("/tmp/private")]
    );
    assert_eq!(mounts.pinned, [PathBytes::from(&work.join(".git"))]);
    assert!(mounts.held.contains(&PathBytes::from(&work.join(".envrc"))));
    for name in crate::repository::OBEYED_NAMES {
        let path = work.join(".git").join(name);
        assert!(mounts.held.contains(&PathBytes::from(&path)), "{name}");
        assert!(found.missing.contains(&path), "{name}");
    }
    for name in [".exrc", ".envrc"] {
        assert!(found.watched.contains(&work.join(name)), "{name}");
    }
}

#[test]
fn nothing_runs_confined_in_a_home_above_it_or_in_a_place_of_secrets() {
    let home = Home::new();
    let is_home = "is your home directory or contains it";
    let secret = "credentials or co's own files";
    for (below, why) in [
        ("", is_home),
        ("..", is_home),
        (".ssh", secret),
        ("state/co", secret),
        ("absent", "cannot be entered"),
    ] {
        for level in [ReadOnly, Workspace] {
            let refused = home.find(&home.grants(), below, level, true);
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(why), "{below}: {refused}");
            assert_eq!(refused.lines().count(), 1);
        }
    }
}

#[test]
fn the_workspace_is_written_around_what_runs_later_where_there_are_no_mounts() {
    let home = Home::new();
    let found = home.find(&home.grants(), "work", Workspace, false).unwrap();
    assert_eq!(
        home.below(&found, Right::Write),
        [
            "work/.git/HEAD",
            "work/.git/objects",
            "work/.git/refs",
            "work/src"
        ]
    );
    assert_eq!(found.mounts, None);
    assert!(found.watched.is_empty());
}

#[test]
fn a_secret_is_one_wherever_a_link_puts_it() {
    let home = Home::new();
    fs::create_dir(home.real.join("work/keys")).unwrap();
    fs::rename(home.real.join(".ssh"), home.real.join("work/keys/ssh")).unwrap();
    std::os::unix::fs::symlink(home.real.join("work/keys/ssh"), home.real.join(".ssh")).unwrap();
    let found = home.found(ReadOnly);
    assert!(!home.below(&found, Right::Read).contains(&"work".to_owned()));
    let names = |dir: &OpenedDirectory| dir.dirs.iter().map(|it| it.0.clone()).collect::<Vec<_>>();
    let [work, keys] = &found.opened[..] else {
        panic!("{:?}", found.opened);
    };
    assert!(names(work).contains(&"src".into()) && names(keys).is_empty());
}

#[test]
fn what_is_kept_is_looked_up_again_when_a_listed_directory_changes() {
    let home = Home::new();
    let grants = home.grants();
    let find = |below| home.find(&grants, below, ReadOnly, true).unwrap();
    let first = find("work");
    assert_eq!(find("work"), first);
    // A new entry of the home: the toolchain is seen at once.
    let tools = ".rustup/toolchains".to_owned();
    fs::create_dir_all(home.real.join(&tools)).unwrap();
    let second = find("work");
    assert!(home.below(&second, Right::Read).contains(&tools));
    assert_ne!(find("work/src"), second);
}

#[test]
fn a_path_that_names_the_home_of_a_tool_opens_its_programs_alone() {
    let home = Home::new();
    for name in [
        ".dotnet/dotnet",
        ".dotnet/corefx/key",
        ".dotnet/token",
        "tools/a",
        "tools/b",
    ] {
        test_files::write(&home.real, name, "");
    }
    let program = home.real.join(".dotnet/extra");
    fs::write(&program, "").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).unwrap();
    let path = ["tools", ".dotnet", ""].map(|name| home.real.join(name));
    let path = std::env::join_paths(path).unwrap();
    let workspace = home.real.join("work");
    let found = find(&home.grants(), &workspace, path, ReadOnly, true);
    let mut reads = home.below(&found.unwrap(), Right::Read);
    reads.retain(|path| path.starts_with(".dotnet") || path.starts_with("tools"));
    assert_eq!(reads, [".dotnet/dotnet", ".dotnet/extra", "tools"]);
}

#[test]
fn an_agent_gets_its_places_and_nothing_else_of_the_home_directory() {
    let home = Home::new();
    for name in [
        ".agent/auth",
        ".agent/settings",
        "state/co/agent/log",
        "state/other",
        ".cargo/other",
    ] {
        test_files::write(&home.real, name, "");
    }
    std::os::unix::fs::symlink("../.agent/settings", home.real.join("state/settings")).unwrap();
    let places = |names: &[&str]| names.iter().map(|name| home.real.join(name)).collect();
    let workspace = home.real.join("work");
    let agent = Confinement::Agent {
        workspace: workspace.clone(),
        places: GrantedPlaces {
            // Whatever a place contains, secrets and the directories of co are not granted with it.
            read: places(&["state/settings", "missing", "state", ".cargo", ".ssh/id"]),
            write: places(&["state/co/agent", ".agent/auth"]),
        },
        whole_network: false,
    };
    let survey = secrets::survey(&workspace);
    let find = |level| {
        let request = GrantRequest {
            level,
            tmp: Path::new("/tmp/private"),
            tmp_size: 1 << 20,
            env: &[("PATH".into(), "/usr/bin".into())],
            namespaces: true,
            survey: Some(&survey),
        };
        home.grants().find(&request).unwrap()
    };
    let found = find(agent.level().unwrap());
    let usual = find(Workspace.of(&workspace).level().unwrap());
    let more = |right| {
        let mut paths = home.below(&found, right);
        let known = home.below(&usual, right);
        paths.retain(|path| !known.contains(path));
        paths
    };
    assert_eq!(
        more(Right::Read),
        [".agent/settings", ".cargo/other", "state/other"]
    );
    assert_eq!(more(Right::Write), [".agent/auth", "state/co/agent"]);
    let mounts = found.mounts.unwrap();
    for path in ["state/co/agent", ".agent/auth"] {
        let path = PathBytes::from(&home.real.join(path));
        assert!(mounts.writable.contains(&path));
    }
    assert_eq!(mounts.held, usual.mounts.unwrap().held);
}

#[test]
fn a_link_in_a_place_that_a_server_writes_opens_nothing() {
    let home = Home::new();
    test_files::write(&home.real, "Documents/letter", "");
    let own = home.real.join("state/co/servers/s");
    for link in [".config/git/template1", "cargo/bin"].map(|it| own.join(it)) {
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(home.real.join("Documents"), link).unwrap();
    }
    let workspace = home.real.join("work");
    let server = Confinement::Server {
        workspace: workspace.clone(),
        places: GrantedPlaces {
            read: Vec::new(),
            write: vec![own.clone()],
        },
        access: ServerAccess::Read,
        network: Network::None,
    };
    // Another way to the same directory names it too.
    let other_way = home.real.join("other-way");
    std::os::unix::fs::symlink(&own, &other_way).unwrap();
    for own in [&own, &other_way] {
        let variable = |name: &str, below: &str| (name.into(), own.join(below).into_os_string());
        let env = [
            ("PATH".into(), "/usr/bin".into()),
            variable("XDG_CONFIG_HOME", ".config"),
            variable("CARGO_HOME", "cargo"),
        ];
        let found = home.grants().find(&GrantRequest {
            level: server.level().unwrap(),
            tmp: Path::new("/tmp/private"),
            tmp_size: 1 << 20,
            env: &env,
            namespaces: true,
            survey: Some(&secrets::survey(&workspace)),
        });
        let found = found.unwrap();
        let reads = home.below(&found, Right::Read);
        assert!(!reads.contains(&"Documents".to_owned()), "{reads:?}");
        assert_eq!(home.below(&found, Right::Write), ["state/co/servers/s"]);
    }
}
