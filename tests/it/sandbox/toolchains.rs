//! Toolchains below the home directory: commands can read and run their code, and cannot read the keys beside it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use co_exec::Confinement;

use super::scene::{Scene, stdout};

/// A tool's home, a program, a file that it reads, and the places where it keeps keys.
const TOOLS: &str = "
.cargo bin/x registry/src/a credentials.toml credentials
.rustup toolchains/stable/bin/x settings.toml
.pyenv shims/x versions/3.12/lib/a
.rbenv bin/x rbenv.d/exec/a
.nodenv libexec/x versions/20/lib/a
.goenv shims/x versions/1.22/src/a
.jenv bin/x available-plugins/maven/a
.phpenv bin/x versions/8/lib/a
.plenv shims/x versions/5/lib/a
.tfenv bin/x versions/1.9/terraform
.nvm versions/node/v20/bin/x nvm.sh
.fnm node-versions/v20/installation/bin/x aliases/default
.volta bin/x tools/image/node/20/lib/a
.nodebrew node/v20/bin/x node/v20/lib/a
.npm-global bin/x lib/node_modules/a etc/npmrc
.npm-packages bin/x lib/node_modules/a etc/npmrc
.yarn bin/x berry/cache/a.zip
.bun bin/x install/global/node_modules/a
.deno bin/x env
.asdf shims/x installs/ruby/3/lib/a
.rvm rubies/3/bin/x gems/3/gems/a
.gem ruby/3.3.0/bin/x ruby/3.3.0/gems/a credentials
.sdkman candidates/java/21/bin/x candidates/java/21/lib/a
.juliaup bin/x juliaup.json
.julia juliaup/bin/x packages/Example/a.jl logs/repl_history.jl servers/pkg/auth.toml
.opam default/bin/x 5.1.0/lib/ocaml/a.cma plugins/opam-publish/me.token
.ghcup bin/x ghc/9.6/lib/a
.cabal bin/x packages/hackage/a config
.stack programs/x86_64-linux/ghc/bin/x snapshots/a/lib/a upload/credentials.json
.elan bin/x toolchains/lean/lib/a
.choosenim toolchains/nim-2/bin/x current
.nimble bin/x pkgs2/a/a.nim github_api_token
.dotnet dotnet sdk/8.0/a.dll corefx/cryptography/x509stores/my/a.pfx
.nuget packages/a/tools/x packages/a/lib/a.dll NuGet/NuGet.Config
.m2 repository/a/x repository/a/a.jar settings.xml
.gradle jdks/21/bin/x caches/modules-2/a.jar gradle.properties
.konan kotlin-native-prebuilt-2/bin/x dependencies/a
.swiftly bin/x toolchains/6/usr/lib/a
.rye shims/x py/3.12/lib/a credentials
.pixi bin/x envs/a/lib/a
.conda envs/a/bin/x pkgs/a/lib/a aau_token
miniconda3 bin/x envs/a/lib/a .condarc
go bin/x pkg/mod/a.go
.local/share/fnm node-versions/v20/bin/x aliases/default
.local/share/mise installs/node/20/bin/x shims/a
.local/share/rtx installs/node/20/bin/x plugins/a
.local/share/pipx venvs/black/bin/x shared/lib/a
.local/share/pnpm pnpm global/5/node_modules/a
.local/share/uv tools/ruff/bin/x python/cpython-3.12/lib/a credentials/token.json
.local/share/virtualenv wheel/3/x py_info/1/a.json
.local/share/virtualenvs work-abc/bin/x work-abc/lib/a
.local bin/x lib/python3/site-packages/a state/a/token
.config/git hooks/x ignore credentials
";

/// Returns the rows of the table as lists of words.
fn tools() -> impl Iterator<Item = Vec<&'static str>> {
    let rows = TOOLS.lines().filter(|line| !line.is_empty());
    rows.map(|line| line.split(' ').collect())
}

/// Names of keys that any tool may use.
const KEYS: &[&str] = &[
    "credentials",
    "credentials.json",
    "credentials/default",
    "token",
    "access_token",
    "auth.json",
    "auth.toml",
    ".netrc",
    ".npmrc",
    "secrets/key",
];

/// Each tool with its code, its own keys, and keys under all other names in the same place.
fn furnish(scene: &Scene) {
    for tool in tools() {
        let [home, program, code, ref keys @ ..] = tool[..] else {
            panic!("{tool:?}");
        };
        let home = scene.home.join(home);
        let lay = |name: &str, text: &str| {
            let path = home.join(name);
            if path.symlink_metadata().is_err()
                && fs::create_dir_all(path.parent().unwrap()).is_ok()
            {
                fs::write(&path, text).unwrap();
            }
            path
        };
        let program = lay(program, "#!/bin/sh\necho ran\n");
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        lay(code, "code\n");
        for key in keys.iter().chain(KEYS) {
            lay(key, "hunter2\n");
        }
    }
}

#[test]
fn code_can_be_read_and_keys_cannot() {
    let scene = Scene::new(None);
    furnish(&scene);
    let mut script = String::new();
    for tool in tools() {
        let [home, program, code, ref keys @ ..] = tool[..] else {
            panic!("{tool:?}");
        };
        let at = |name: &str| scene.home.join(home).join(name).display().to_string();
        let (program, code) = (at(program), at(code));
        script += &format!("test \"$({program})\" = ran || echo 'DOES NOT RUN {program}'\n");
        script += &format!("cat {code} > /dev/null || echo 'NOT READ {code}'\n");
        for key in keys.iter().chain(KEYS).map(|key| at(key)) {
            script += &format!("test ! -f {key} || ! cat {key} || echo 'READ {key}'\n");
        }
    }
    script += "echo 'AT THE END'";
    let levels: [Confinement; 2] = [scene.read_only(), scene.workspace()];
    for level in levels {
        let done = scene.bash(&level, &format!("exec 2> /dev/null\n{script}"));
        assert_eq!(stdout(&done), "AT THE END\n");
    }
}
