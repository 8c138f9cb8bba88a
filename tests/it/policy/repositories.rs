//! Hostile repositories: each makes a harmless command run a program, and the sandbox holds that program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::world::World;
use crate::support::BACKEND;

/// Lines with a command and, behind the arrow, the shell text that prepares its repository. `$TRAP` is a program of the
/// workspace that leaves marks.
const SCENES: &str = r#"
git status <- git config core.fsmonitor $TRAP
git diff <- git config diff.external $TRAP
git diff <- echo '*.txt diff=x' > .gitattributes; git config diff.x.textconv $TRAP
git diff <- echo '*.txt diff=x' > .gitattributes; git config diff.x.command $TRAP
git diff <- echo '*.txt filter=x' > .gitattributes; git config filter.x.clean $TRAP
git status <- echo '*.txt filter=x' > .gitattributes; git config filter.x.process $TRAP
git log -p <- git config --worktree diff.external $TRAP; git config log.diffMerges on; git config diff.external $TRAP
git show --ext-diff <- git config diff.external $TRAP
git st <- git config alias.st "!$TRAP"
git diff <- printf '[diff]\n\texternal = %s\n' $TRAP > evil; git config include.path ../evil
git -C sub status <- git init -q sub; git -C sub config core.fsmonitor $TRAP
cd bare && git log <- git clone -q --bare . bare; git -C bare config core.fsmonitor $TRAP; git -C bare config alias.log "!$TRAP"; cd bare; ln -s .. w; cd ..; git config core.pager $TRAP; git -C bare config core.worktree ..; git -C bare config core.bare false
git status <- git init -q sub; git -C sub -c user.name=x -c user.email=x commit -q --allow-empty -m x; git -c advice.addEmbeddedRepo=false add sub; git -C sub config core.fsmonitor $TRAP; touch sub/x
GIT_EXTERNAL_DIFF=$PWD/trap git diff <- true
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=diff.external GIT_CONFIG_VALUE_0=$PWD/trap git diff <- true
git status <- cp $TRAP .git/hooks/post-index-change; touch b.txt
git status <- mkdir hooks; cp $TRAP hooks/post-index-change; git config core.hooksPath hooks; touch b.txt
git log -1 --show-signature <- git config gpg.program $TRAP; git update-ref HEAD $(git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----' | git hash-object -t commit -w --stdin)
git submodule update <- git -c protocol.file.allow=always submodule -q add ./. sub; git -C sub checkout -q HEAD~1; git config submodule.sub.update "!$TRAP"
cargo tree --offline <- printf '[package]\nname = "x"\nversion = "1.0.0"\n[workspace]\n' > Cargo.toml; mkdir .cargo; echo "build.rustc = '$TRAP'" > .cargo/config.toml
cargo check --offline <- printf '[package]\nname = "x"\nversion = "1.0.0"\n[workspace]\n' > Cargo.toml; mkdir .cargo; echo "build.rustc-wrapper = '$TRAP'" > .cargo/config.toml
npm run x <- echo '{"scripts": {"x": "./trap"}}' > package.json
npm run x <- echo '{"scripts": {"x": "ls"}}' > package.json; echo script-shell=$TRAP > .npmrc
git grep -O./trap one <- true
rg --pre ./trap one <- true
awk 'BEGIN { system("./trap") }' <- true
sed '1e ./trap' a.txt <- true
sort --compress-program=./trap -S 1 a.txt; ./trap <- true
find . -name a.txt -exec ./trap {} + <- true
"#;

struct Scene {
    world: World,
    marks: [PathBuf; 2],
}

impl Scene {
    /// A repository with a change, and a trap that marks the workspace and the home directory.
    fn new(prepare: &str) -> Self {
        let world = World::new();
        fs::remove_dir_all(world.workspace.join("nested-repo")).unwrap();
        let marks = [world.workspace.join("mark"), world.home.join("mark")];
        let trap = world.workspace.join("trap");
        let [inside, outside] = &marks;
        let text = format!(
            "#!/bin/sh\necho x > '{}'\necho x > '{}'\ncat\n",
            inside.display(),
            outside.display()
        );
        fs::write(&trap, text).unwrap();
        fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
        world.commit("second");
        fs::write(world.workspace.join("a.txt"), "one\nchanged\n").unwrap();
        let scene = Self { world, marks };
        let prepare = format!("TRAP={}; {prepare}", trap.display());
        scene.run(Command::new("bash").args(["-c", &prepare]));
        scene.clear();
        scene
    }

    fn run(&self, command: &mut Command) {
        let _status = command
            .current_dir(&self.world.workspace)
            .env("HOME", &self.world.home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
    }

    fn clear(&self) {
        for mark in &self.marks {
            let _missing = fs::remove_file(mark);
        }
    }

    fn is_marked(&self) -> bool {
        self.marks.iter().any(|mark| mark.exists())
    }
}

#[test]
fn no_program_of_a_repository_has_an_effect() {
    let mut sprang = 0;
    for line in SCENES.trim().lines() {
        let (command, prepare) = line.split_once(" <- ").unwrap();
        let scene = Scene::new(prepare);
        scene.run(Command::new("bash").args(["-c", command]));
        sprang += usize::from(scene.is_marked());
        scene.clear();
        scene.run(Command::new(BACKEND).args(["exec", "--read-only", command]));
        assert!(!scene.is_marked(), "`{command}` after `{prepare}`");
    }
    // Some versions of git run fewer of these programs, and cargo, npm or rg may be missing.
    assert!(sprang >= 20, "only {sprang} traps spring by themselves");
}
