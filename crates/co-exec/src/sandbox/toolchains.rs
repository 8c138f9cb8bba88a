//! The paths where toolchains keep code and the files that it needs. This module contains only names.
//!
//! A tool's home often contains keys beside the code. So each path is listed, and the home itself is never granted.

/// A tool: its directories, and the readable paths in them.
pub(super) struct Toolchain {
    /// Its directories below the home directory.
    pub homes: &'static [&'static str],
    /// Variables that name another home of the tool.
    pub variables: &'static [&'static str],
    /// The readable paths below each home. A trailing star matches any end of a name. An empty list means the whole
    /// home, which contains only code.
    pub places: &'static [&'static str],
}

const fn tool(homes: &'static [&'static str], places: &'static [&'static str]) -> Toolchain {
    Toolchain {
        homes,
        variables: &[],
        places,
    }
}

const fn named(
    homes: &'static [&'static str],
    variables: &'static [&'static str],
    places: &'static [&'static str],
) -> Toolchain {
    Toolchain {
        homes,
        variables,
        places,
    }
}

/// The files that git reads in its directory below `~/.config`.
pub(super) const GIT: &[&str] = &[
    "config",
    "ignore",
    "attributes",
    "hooks",
    "template*",
    "message*",
];

/// A directory that `python -m venv` makes.
const VENV: &[&str] = &["bin", "include", "lib", "lib64", "pyvenv.cfg", "share"];

/// Version managers that work like rbenv.
const ENV: &[&str] = &[
    "*.d",
    "available-plugins",
    "bin",
    "completions",
    "fish",
    "lib",
    "libexec",
    "plugins",
    "share",
    "shims",
    "src",
    "version",
    "versions",
];

const CONDA: &[&str] = &[
    "bin",
    "compiler_compat",
    "conda-meta",
    "condabin",
    "envs",
    "etc",
    "include",
    "lib",
    "lib64",
    "libexec",
    "pkgs",
    "sbin",
    "share",
    "shell",
    "ssl",
    "x86_64-*",
    "aarch64-*",
];

pub(super) const TOOLCHAINS: &[Toolchain] = &[
    tool(&[".config/git"], GIT),
    tool(
        &["."],
        &[
            ".gitconfig",
            ".nix-profile",
            ".guix-profile",
            ".local/bin",
            ".local/lib",
        ],
    ),
    named(
        &[".cargo"],
        &["CARGO_HOME"],
        &[
            ".crates*",
            ".global-cache",
            ".package-cache*",
            "bin",
            "config",
            "config.toml",
            "env*",
            "git",
            "registry",
        ],
    ),
    named(
        &[".rustup"],
        &["RUSTUP_HOME"],
        &["settings.toml", "toolchains", "update-hashes"],
    ),
    named(&[".pyenv"], &["PYENV_ROOT"], ENV),
    tool(
        &[
            ".rbenv", ".nodenv", ".goenv", ".jenv", ".phpenv", ".plenv", ".tfenv",
        ],
        ENV,
    ),
    named(
        &[".nvm"],
        &["NVM_DIR"],
        &[
            "alias",
            "bash_completion",
            "default-packages",
            "nvm-exec",
            "nvm.sh",
            "versions",
        ],
    ),
    tool(&[".fnm", ".local/share/fnm"], &["aliases", "node-versions"]),
    tool(&[".volta"], &["bin", "hooks.json", "tools"]),
    tool(
        &[".nodebrew"],
        &["current", "default", "iojs", "node", "nodebrew"],
    ),
    // `etc/npmrc` in them holds keys.
    tool(
        &[".npm-global", ".npm-packages"],
        &["bin", "include", "lib", "share"],
    ),
    tool(
        &[".yarn"],
        &[
            "berry/cache",
            "bin",
            "lib",
            "plugins",
            "releases",
            "versions",
        ],
    ),
    tool(&[".bun"], &["bin", "install/cache", "install/global"]),
    tool(&[".deno"], &["bin", "env*"]),
    tool(
        &[".local/share/pnpm"],
        &[".tools", "bin", "global", "nodejs", "pnpm", "pnpx", "store"],
    ),
    tool(
        &[".asdf"],
        &[
            "asdf.*",
            "bin",
            "completions",
            "defaults",
            "installs",
            "internal",
            "lib",
            "libexec",
            "plugins",
            "shims",
            "version.txt",
        ],
    ),
    tool(
        &[".local/share/mise", ".local/share/rtx"],
        &["bin", "installs", "plugins", "shims"],
    ),
    tool(
        &[".rvm"],
        &[
            "RELEASE",
            "VERSION",
            "bin",
            "config",
            "environments",
            "gems",
            "gemsets",
            "hooks",
            "lib",
            "rubies",
            "scripts",
            "usr",
            "wrappers",
        ],
    ),
    tool(&[".gem"], &["jruby", "ruby", "specs", "truffleruby"]),
    named(&["go"], &["GOPATH"], &["bin", "pkg", "src"]),
    tool(&[".config/go"], &["env"]),
    named(&[], &["GOROOT", "JAVA_HOME"], &[]),
    tool(
        &[".sdkman"],
        &[
            "bin",
            "candidates",
            "contrib",
            "etc",
            "ext",
            "libexec",
            "src",
            "var",
        ],
    ),
    tool(&[".m2"], &["repository"]),
    tool(&[".gradle"], &["caches", "jdks", "wrapper"]),
    tool(
        &[".konan"],
        &["cache", "dependencies", "kotlin-native-prebuilt-*"],
    ),
    tool(&[".juliaup"], &["bin", "juliaup.json"]),
    tool(
        &[".julia"],
        &[
            "artifacts",
            "bin",
            "clones",
            "compiled",
            "config",
            "dev",
            "environments",
            "juliaup",
            "packages",
            "registries",
        ],
    ),
    // A directory for each switch, by any name, and `plugins` with keys beside them.
    tool(
        &[".opam"],
        &[
            "*/.opam-switch",
            "*/bin",
            "*/doc",
            "*/lib",
            "*/libexec",
            "*/man",
            "*/sbin",
            "*/share",
            "config",
            "opam-init",
            "repo",
        ],
    ),
    tool(
        &[".ghcup"],
        &["bin", "cache", "config.yaml", "env", "ghc", "hls", "share"],
    ),
    tool(&[".cabal"], &["bin", "lib", "packages", "share", "store"]),
    tool(
        &[".stack"],
        &[
            "compiler-tools",
            "config.yaml",
            "global-project",
            "indices",
            "pantry",
            "programs",
            "script",
            "setup-exe-cache",
            "setup-exe-src",
            "snapshots",
            "stack.sqlite3",
            "templates",
        ],
    ),
    tool(
        &[".elan"],
        &["bin", "env", "settings.toml", "toolchains", "update-hashes"],
    ),
    tool(&[".choosenim"], &["channel", "current", "toolchains"]),
    tool(
        &[".nimble"],
        &[
            "bin",
            "nimbledata*",
            "packages_*",
            "pkgcache",
            "pkgs",
            "pkgs2",
        ],
    ),
    tool(
        &[".dotnet"],
        &[
            "NuGetFallbackFolder",
            "dnx",
            "dotnet",
            "host",
            "library-packs",
            "metadata",
            "packs",
            "sdk",
            "sdk-manifests",
            "shared",
            "store",
            "templates",
            "tools",
        ],
    ),
    tool(&[".nuget"], &["packages"]),
    tool(&[".swiftly"], &["bin", "config.json", "env*", "toolchains"]),
    tool(
        &[".rye"],
        &["env", "pip-tools", "py", "self", "shims", "tools", "uv"],
    ),
    tool(
        &[".pixi"],
        &["bin", "completions", "config.toml", "envs", "manifests"],
    ),
    tool(&[".conda"], &["environments.txt", "envs", "pkgs"]),
    named(
        &[
            "anaconda3",
            "mambaforge",
            "micromamba",
            "miniconda3",
            "miniforge3",
        ],
        &["CONDA_PREFIX"],
        CONDA,
    ),
    tool(&[".local/share/pipx"], &["py", "shared", "venvs"]),
    tool(&[".local/share/uv"], &["python", "tools"]),
    tool(&[".local/share/virtualenv"], &["py_info", "unzip", "wheel"]),
    named(&[], &["VIRTUAL_ENV"], VENV),
    tool(
        &[".local/share/virtualenvs"],
        &[
            "*/bin",
            "*/include",
            "*/lib",
            "*/lib64",
            "*/pyvenv.cfg",
            "*/share",
        ],
    ),
];
