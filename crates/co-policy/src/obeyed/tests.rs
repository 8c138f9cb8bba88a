use std::collections::HashSet;

use super::*;

/// Paths whose edits require approval, with a part of the reason.
const ASKED: &str = "
.nvim.lua               Neovim runs it
deep/.exrc              Neovim runs it
.vimrc                  Neovim runs it
.lazy.lua               Neovim runs it
.dir-locals.el          Emacs
.vscode/tasks.json      Visual Studio Code
a/.VSCODE/deep/x        Visual Studio Code
a.code-workspace        Visual Studio Code
.idea/workspace.xml     an editor starts
.zed/tasks.json         an editor starts
.helix/languages.toml   an editor starts
a.sublime-project       an editor starts
.luarc.json             language server
.emmyrc.json            language server
hie.yaml                language server
tsconfig.json           language server
pkg/tsconfig.build.json language server
compile_commands.json   language server
AGENTS.md               agents obey it
docs/Agents.md          agents obey it
AGENTS.override.md      agents obey it
CLAUDE.local.md         agents obey it
GEMINI.md               agents obey it
.cursorrules            agents obey it
.rules                  agents obey it
.clinerules             agents obey it
x.instructions.md       agents obey it
skills/a/SKILL.md       agents obey it
CO.md                   co obeys it
.co/policy.toml         co obeys it
.mcp.json               agents start the servers
mcp.json                agents start the servers
.clinerules/a.md        an agent runs
.claude/settings.json   an agent runs
.codex/config.toml      an agent runs
.gemini/settings.json   an agent runs
.kiro/hooks/a           an agent runs
.roo/mcp.json           an agent runs
opencode.json           an agent runs
crush.json              an agent runs
.amazonq/rules/a.md     an agent runs
.newagent/rules.md      begin with a dot
.unknownrc              begin with a dot
src/.hidden/x           begin with a dot
.config/nvim/init.lua   begin with a dot
mise.toml               enters the directory
.mise.local.toml        enters the directory
mise.production.toml    enters the directory
.config/mise.toml       enters the directory
.tool-versions          enters the directory
.envrc                  enters the directory
.bashrc                 a shell or a login
.zshenv                 a shell or a login
home/.profile           a shell or a login
config.fish             a shell or a login
flake.nix               an environment
devbox.json             an environment
.devcontainer/x.json    an environment
.Rprofile               an interpreter or debugger
.gdbinit                an interpreter or debugger
sitecustomize.py        an interpreter or debugger
lib/x.pth               an interpreter or debugger
venv/bin/python         an interpreter or debugger
HEAD                    git takes its directory
x.git/HEAD              git takes its directory
.gitattributes          git obeys it
.gitmodules             git obeys it
tools/hooks/check       as a hook
.husky/pre-commit       as a hook
.pre-commit-config.yaml as a hook
lefthook.yml            as a hook
.hg/hgrc                the hooks and programs
sub/.hg/hgrc            the hooks and programs
.jj/repo/config.toml    the hooks and programs
.sl/config              the hooks and programs
_darcs/prefs/defaults   the hooks and programs
Makefile                a task runner
deep/rules.mk           a task runner
GNUmakefile             a task runner
Ma\u{212a}efile    a task runner
justfile                a task runner
Taskfile.yml            a task runner
Procfile                a task runner
noxfile.py              a task runner
ansible.cfg             a task runner
Dockerfile              a container
compose.yaml            a container
.github/workflows/ci    continuous integration
.gitlab-ci.yml          continuous integration
Jenkinsfile             continuous integration
build.rs                Cargo
Cargo.toml              Cargo
.cargo/config.toml      Cargo
rust-toolchain.toml     Cargo
package.json            JavaScript
.pnpmfile.cjs           JavaScript
pnpm-workspace.yaml     JavaScript
.yarn/releases/a.cjs    JavaScript
bunfig.toml             JavaScript
deno.json               JavaScript
vite.config.mts         JavaScript
node_modules/a/index.js JavaScript
.eslintrc.cjs           JavaScript
setup.py                Python
conftest.py             Python
pyproject.toml          Python
tox.ini                 a task runner
requirements-dev.txt    Python
build.gradle.kts        Java
gradle/wrapper/x        Java
.mvn/extensions.xml     Java
pom.xml                 Java
.bazelrc                Bazel
ci/a.bazelrc            Bazel
BUILD                   Bazel
tools/bazel             Bazel
defs.bzl                Bazel
.buckconfig             Bazel
CMakeLists.txt          C++
a/b.cmake               C++
meson.build             C++
configure               C++
build.zig               Zig
Package.swift           Zig
mix.exs                 Zig
dune                    Zig
x.cabal                 Zig
Gemfile                 Ruby
x.gemspec               Ruby
.rspec                  Ruby
composer.json           PHP
phpunit.xml.dist        PHP
a.csproj                .NET
Directory.Build.props   .NET
PKGBUILD                packages or documents
book.toml               packages or documents
";

/// Paths whose edits do not require approval.
const FREE: &str = "src/main.rs src/build.rs.md README.md src/co/mod.rs hooks src/head.rs docs/mise.md a.toml .gitignore \
    src/.gitkeep .editorconfig .dockerignore .well-known/security.txt bazel/x.rs tools/x env.rs package/x build/x.c vscode/x \
    Makefile/x .changeset/a.md config x/config.toml agents/x.py .. ./a ../c";

#[test]
fn files_that_others_run_or_obey_are_known() {
    for line in ASKED.lines().filter(|line| !line.is_empty()) {
        let (path, why) = line.split_once(' ').unwrap();
        let found = reason(Path::new(path)).unwrap_or_else(|| panic!("{path} is unknown"));
        assert!(found.contains(why.trim()), "{path}: {found}");
    }
    for path in FREE.split_whitespace() {
        assert_eq!(reason(Path::new(path)), None, "{path}");
    }
}

#[test]
fn the_reason_names_the_part_of_the_path() {
    for (path, expected) in [
        (
            "src/build.rs",
            "`build.rs`: Cargo builds and runs it or what it names, also for an editor",
        ),
        (
            ".github/a/Makefile",
            "`.github`: continuous integration runs it",
        ),
        (
            ".new\nline",
            "`.new\\nline`: programs read settings from names that begin with a dot",
        ),
    ] {
        assert_eq!(reason(Path::new(path)).as_deref(), Some(expected), "{path}");
    }
}

#[test]
fn each_name_has_one_row_and_what_is_held_asks() {
    let mut seen = HashSet::new();
    for (reason, names) in rows() {
        assert!(!reason.ends_with('.') && !names.is_empty(), "{reason}");
        assert!(reason.len() <= 78, "the help has no room for: {reason}");
        for name in names {
            assert!(seen.insert(folded(name)), "{name} has two rows");
            let directory = name.strip_suffix('/');
            assert!(
                !directory.is_some_and(|it| it.contains(['/', '*'])),
                "{name}"
            );
            assert!(name.matches('*').count() < 2, "{name}");
        }
    }
    for name in held() {
        let is_directory = seen.contains(&format!("{}/", folded(name)));
        let file = if is_directory {
            format!("{name}/x")
        } else {
            name.to_owned()
        };
        assert!(reason(Path::new(&file)).is_some(), "{name}");
        assert!(!name.contains('*'), "{name}");
    }
    for name in harmless() {
        assert!(name.starts_with('.') && !seen.contains(name), "{name}");
    }
}
