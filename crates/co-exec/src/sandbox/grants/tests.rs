use std::fs;

use super::*;

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
            let path = home.real.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
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
        level: SandboxLevel,
        namespaces: bool,
    ) -> Result<FoundPaths, Refused> {
        let workspace = self.real.join(below);
        grants.find(&GrantRequest {
            workspace: &workspace,
            tmp: Path::new("/tmp/private"),
            env: &[("PATH".into(), "/usr/bin:relative::/".into())],
            level,
            namespaces,
            hidden: &[],
        })
    }

    /// The paths of one right, below the home.
    fn below(&self, found: &FoundPaths, right: Right) -> Vec<String> {
        let ours = found.grants.iter().filter(|grant| grant.0 == right);
        ours.filter_map(|grant| grant.1.0.strip_prefix(&self.real).ok())
            .map(|path| path.to_str().unwrap().to_owned())
            .collect()
    }
}

#[test]
fn read_only_reads_the_workspace_and_toolchains_and_no_credentials() {
    let home = Home::new();
    let found = home
        .find(&home.grants(), "work", SandboxLevel::ReadOnly, true)
        .unwrap();
    let runs = home.below(&found, Right::ReadExecute);
    assert_eq!(runs, [".cargo/bin", ".config/git/config", ".gitconfig"]);
    assert_eq!(home.below(&found, Right::Read), ["work"]);
    let writes = |grant: &Grant| grant.0 == Right::Write;
    assert!(!found.grants.iter().any(writes));
    let tmp = PathBytes::from("/tmp/private");
    assert!(
        found
            .grants
            .contains(&Grant(Right::WriteNoExecute, tmp.clone()))
    );
    let mounts = found.mounts.unwrap();
    assert_eq!(mounts.writable, std::slice::from_ref(&tmp));
    assert_eq!(
        mounts.inert,
        [PathBytes::from(&home.real.join("work")), tmp]
    );
    assert!(!found.grants.iter().any(|grant| grant.1.0 == Path::new("/")));
}

#[test]
fn a_home_as_workspace_is_granted_around_its_secrets() {
    let home = Home::new();
    let found = home
        .find(&home.grants(), "", SandboxLevel::ReadOnly, true)
        .unwrap();
    let reads = home.below(&found, Right::Read);
    let [bin, git, more] = [".cargo/bin", ".config/git/config", ".gitconfig"];
    assert_eq!(reads, [bin, git, more, "notes", "work"]);
    assert_eq!(home.below(&found, Right::List), [""]);
    // A toolchain in the home directory has to run.
    let mounts = found.mounts.unwrap();
    assert_eq!(mounts.inert, [PathBytes::from("/tmp/private")]);
    let own = PathBytes::from(&home.real.join("state/co"));
    assert!(mounts.hidden.paths.contains(&own));
}

#[test]
fn the_workspace_is_written_whole_where_mounts_hold_the_rest() {
    let home = Home::new();
    let found = home
        .find(&home.grants(), "work", SandboxLevel::Workspace, true)
        .unwrap();
    assert_eq!(home.below(&found, Right::Write), ["work"]);
    let mounts = found.mounts.unwrap();
    let work = home.real.join("work");
    assert_eq!(
        mounts.writable,
        [PathBytes::from(&work), PathBytes::from("/tmp/private")]
    );
    assert_eq!(mounts.pinned, [PathBytes::from(&work.join(".git"))]);
    assert!(mounts.held.contains(&PathBytes::from(&work.join(".envrc"))));
    for name in crate::sandbox::names::GIT_OBEYS {
        let path = work.join(".git").join(name);
        assert!(mounts.held.contains(&PathBytes::from(&path)), "{name}");
        assert!(found.missing.contains(&path), "{name}");
    }
    for name in [".exrc", ".envrc"] {
        assert!(found.watched.contains(&work.join(name)), "{name}");
    }
}

#[test]
fn no_command_writes_in_a_home() {
    let home = Home::new();
    for namespaces in [true, false] {
        let refused = home.find(&home.grants(), "", SandboxLevel::Workspace, namespaces);
        let refused = refused.unwrap_err().0;
        assert!(refused.contains("is your home directory"), "{refused}");
        assert_eq!(refused.lines().count(), 1);
    }
}

#[test]
fn the_workspace_is_written_around_what_runs_later_where_there_are_no_mounts() {
    let home = Home::new();
    let found = home
        .find(&home.grants(), "work", SandboxLevel::Workspace, false)
        .unwrap();
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
fn a_place_of_secrets_is_no_workspace() {
    let home = Home::new();
    for below in [".ssh", "state/co"] {
        let refused = home
            .find(&home.grants(), below, SandboxLevel::ReadOnly, true)
            .unwrap_err();
        assert!(
            refused.0.contains("credentials or co's own files"),
            "{refused}"
        );
    }
    let refused = home
        .find(&home.grants(), "absent", SandboxLevel::ReadOnly, true)
        .unwrap_err();
    assert!(refused.0.contains("cannot be entered"), "{refused}");
}

#[test]
fn a_secret_is_one_wherever_a_link_puts_it() {
    let home = Home::new();
    fs::create_dir(home.real.join("work/keys")).unwrap();
    fs::rename(home.real.join(".ssh"), home.real.join("work/keys/ssh")).unwrap();
    std::os::unix::fs::symlink(home.real.join("work/keys/ssh"), home.real.join(".ssh")).unwrap();
    let found = home
        .find(&home.grants(), "work", SandboxLevel::ReadOnly, true)
        .unwrap();
    let reads = home.below(&found, Right::Read);
    assert!(
        !reads
            .iter()
            .any(|path| path == "work" || path.starts_with("work/keys")),
        "{reads:?}"
    );
    assert!(reads.contains(&"work/src".to_owned()), "{reads:?}");
}

#[test]
fn what_is_kept_is_looked_up_again_when_a_listed_directory_changes() {
    let home = Home::new();
    let grants = home.grants();
    let first = home
        .find(&grants, "work", SandboxLevel::ReadOnly, true)
        .unwrap();
    assert_eq!(
        home.find(&grants, "work", SandboxLevel::ReadOnly, true)
            .unwrap(),
        first
    );
    // A new entry of the home: the toolchain is seen at once.
    fs::create_dir_all(home.real.join(".rustup/toolchains")).unwrap();
    let second = home
        .find(&grants, "work", SandboxLevel::ReadOnly, true)
        .unwrap();
    assert!(
        home.below(&second, Right::ReadExecute)
            .contains(&".rustup/toolchains".to_owned())
    );
    let other = home
        .find(&grants, "", SandboxLevel::ReadOnly, true)
        .unwrap();
    assert_ne!(other, second);
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
        let path = home.real.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
    }
    let program = home.real.join(".dotnet/extra");
    fs::write(&program, "").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).unwrap();
    let path = ["tools", ".dotnet", ""].map(|name| home.real.join(name));
    let path = std::env::join_paths(path).unwrap();
    let workspace = home.real.join("work");
    let found = home.grants().find(&GrantRequest {
        workspace: &workspace,
        tmp: Path::new("/tmp/private"),
        env: &[("PATH".into(), path)],
        level: SandboxLevel::ReadOnly,
        namespaces: true,
        hidden: &[],
    });
    let mut reads = home.below(&found.unwrap(), Right::ReadExecute);
    reads.retain(|path| path.starts_with(".dotnet") || path.starts_with("tools"));
    assert_eq!(reads, [".dotnet/dotnet", ".dotnet/extra", "tools"]);
}
