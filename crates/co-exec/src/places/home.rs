//! The paths below the home directory that confined commands may read, and those that they must never read.
//!
//! **Add a toolchain to `TOOLCHAINS`, and a secret path to `SECRETS`.** The home of a toolchain often contains keys beside the
//! code. So the readable paths in it are listed one by one, and the home itself is not granted as a whole. This file contains
//! only names.

/// A toolchain: its home directories, its variables, and the readable paths. Each field is a list of words.
pub(crate) struct Toolchain {
    homes: &'static str,
    variables: &'static str,
    places: &'static str,
}

impl Toolchain {
    /// Returns the home directories of the toolchain, relative to the person's home directory.
    pub(crate) fn homes(&self) -> impl Iterator<Item = &'static str> {
        self.homes.split_whitespace()
    }

    /// Returns the variables that can name another home of the toolchain.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &'static str> {
        self.variables.split_whitespace()
    }

    /// Returns the readable paths, relative to each home of the toolchain. A star matches any part of a name. If there are no
    /// paths, the whole home is readable, because it contains only code.
    pub(crate) fn places(&self) -> impl Iterator<Item = &'static str> {
        self.places.split_whitespace()
    }
}

/// Returns the names of all variables that can name the home of a toolchain.
pub(crate) fn variables() -> impl Iterator<Item = &'static str> {
    TOOLCHAINS.iter().flat_map(Toolchain::variables)
}

/// The variables that name files with CA certificates: for OpenSSL, curl, git, requests, pip, Node.js, cargo and the AWS tools.
/// Commands may read these files, because their TLS clients need them.
pub const CERTIFICATES: [&str; 8] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
];

const fn tool(homes: &'static str, variables: &'static str, places: &'static str) -> Toolchain {
    Toolchain {
        homes,
        variables,
        places,
    }
}

/// The toolchains: their homes, their variables, and the readable paths in the homes.
pub(crate) const TOOLCHAINS: &[Toolchain] = &[
    tool(
        ".cargo",
        "CARGO_HOME",
        ".crates* .global-cache .package-cache* bin config config.toml env* git registry",
    ),
    tool(
        ".rustup",
        "RUSTUP_HOME",
        "settings.toml toolchains update-hashes",
    ),
    tool("go", "GOPATH", "bin pkg src"),
    tool("", "GOROOT JAVA_HOME", ""),
    tool(
        ".nvm",
        "NVM_DIR",
        "alias bash_completion default-packages nvm-exec nvm.sh versions",
    ),
    tool("", "VIRTUAL_ENV", VENV),
    tool(
        "anaconda3 mambaforge micromamba miniconda3 miniforge3",
        "CONDA_PREFIX",
        CONDA,
    ),
    tool(".pyenv", "PYENV_ROOT", ENV),
    GIT,
    tool(
        ".",
        "",
        ".gitconfig .nix-profile .guix-profile .local/bin .local/lib",
    ),
    tool(".rbenv .nodenv .goenv .jenv .phpenv .plenv .tfenv", "", ENV),
    tool(".fnm .local/share/fnm", "", "aliases node-versions"),
    tool(".volta", "", "bin hooks.json tools"),
    tool(".nodebrew", "", "current default iojs node nodebrew"),
    // `etc/npmrc` in them holds keys.
    tool(".npm-global .npm-packages", "", "bin include lib share"),
    tool(".yarn", "", "berry/cache bin lib plugins releases versions"),
    tool(".bun", "", "bin install/cache install/global"),
    tool(".deno", "", "bin env*"),
    tool(
        ".local/share/pnpm",
        "",
        ".tools bin global nodejs pnpm pnpx store",
    ),
    tool(
        ".asdf",
        "",
        "asdf.* bin completions defaults installs internal lib libexec plugins shims \
         version.txt",
    ),
    tool(
        ".local/share/mise .local/share/rtx",
        "",
        "bin installs plugins shims",
    ),
    tool(
        ".rvm",
        "",
        "RELEASE VERSION bin config environments gems gemsets hooks lib rubies scripts \
         usr wrappers",
    ),
    tool(".gem", "", "jruby ruby specs truffleruby"),
    tool(".config/go", "", "env"),
    tool(
        ".sdkman",
        "",
        "bin candidates contrib etc ext libexec src var",
    ),
    tool(".m2", "", "repository"),
    tool(".gradle", "", "caches jdks wrapper"),
    tool(".konan", "", "cache dependencies kotlin-native-prebuilt-*"),
    tool(".juliaup", "", "bin juliaup.json"),
    tool(
        ".julia",
        "",
        "artifacts bin clones compiled config dev environments juliaup packages \
         registries",
    ),
    // A directory for each switch, by any name, and `plugins` with keys beside them.
    tool(
        ".opam",
        "",
        "*/.opam-switch */bin */doc */lib */libexec */man */sbin */share config opam-init \
         repo",
    ),
    tool(".ghcup", "", "bin cache config.yaml env ghc hls share"),
    tool(".cabal", "", "bin lib packages share store"),
    tool(
        ".stack",
        "",
        "compiler-tools config.yaml global-project indices pantry programs script \
         setup-exe-cache setup-exe-src snapshots stack.sqlite3 templates",
    ),
    tool(
        ".elan",
        "",
        "bin env settings.toml toolchains update-hashes",
    ),
    tool(".choosenim", "", "channel current toolchains"),
    tool(
        ".nimble",
        "",
        "bin nimbledata* packages_* pkgcache pkgs pkgs2",
    ),
    tool(
        ".dotnet",
        "",
        "NuGetFallbackFolder dnx dotnet host library-packs metadata packs sdk \
         sdk-manifests shared store templates tools",
    ),
    tool(".nuget", "", "packages"),
    tool(".swiftly", "", "bin config.json env* toolchains"),
    tool(".rye", "", "env pip-tools py self shims tools uv"),
    tool(".pixi", "", "bin completions config.toml envs manifests"),
    tool(".conda", "", "environments.txt envs pkgs"),
    tool(".local/share/pipx", "", "py shared venvs"),
    tool(".local/share/uv", "", "python tools"),
    tool(".local/share/virtualenv", "", "py_info unzip wheel"),
    tool(
        ".local/share/virtualenvs",
        "",
        "*/bin */include */lib */lib64 */pyvenv.cfg */share",
    ),
];

/// The files that git reads in `~/.config/git`.
pub(crate) const GIT: Toolchain = tool(
    ".config/git",
    "",
    "config ignore attributes hooks template* message*",
);

/// The readable paths in a virtual environment that `python -m venv` creates.
const VENV: &str = "bin include lib lib64 pyvenv.cfg share";

/// The readable paths in the home of a version manager that works like rbenv.
const ENV: &str = "*.d available-plugins bin completions fish lib libexec plugins share shims src version \
 versions";

const CONDA: &str = "bin compiler_compat conda-meta condabin envs etc include lib lib64 libexec pkgs sbin \
 share shell ssl x86_64-* aarch64-*";

/// A toolchain that keeps downloaded packages below the home directory.
pub(crate) struct PackageTool {
    /// The name of the toolchain, which is also the name of the directory for its packages in the layer of a trial.
    pub(crate) name: &'static str,
    /// The home of the toolchain, relative to the person's home directory.
    pub(crate) home: &'static str,
    places: &'static str,
    pub(crate) elsewhere: Elsewhere,
}

/// The way to make a toolchain keep its packages in another directory.
pub(crate) enum Elsewhere {
    /// Sets a variable that names the home of the toolchain.
    Home(&'static str),
    /// Sets a variable that names the directory of the packages.
    Packages(&'static str),
    /// Sets a variable with options for Java, and an option in it that names the directory of the packages.
    JavaOption(&'static str, &'static str),
}

impl PackageTool {
    /// Returns the directories to which the toolchain downloads packages, relative to its home.
    pub(crate) fn places(&self) -> impl Iterator<Item = &'static str> {
        self.places.split_whitespace()
    }
}

impl Elsewhere {
    pub(crate) fn variable(&self) -> &'static str {
        match self {
            Self::Home(name) | Self::Packages(name) | Self::JavaOption(name, _) => name,
        }
    }
}

const fn packages(
    name: &'static str,
    home: &'static str,
    places: &'static str,
    elsewhere: Elsewhere,
) -> PackageTool {
    PackageTool {
        name,
        home,
        places,
        elsewhere,
    }
}

/// The toolchains whose packages a trial may download, into a layer. A variable that moves the home of a toolchain also moves its
/// configuration, so co sets such a variable only if the home does not exist.
///
/// Sources: The Cargo Book ("Cargo Home"); `go help environment` and `go help gopath`; Maven's guide "Configuring Maven" and its
/// property `maven.repo.local`; Gradle's user manual ("Gradle-managed Directories"); "Managing the global packages, cache, and
/// temp folders" of NuGet; pnpm's setting `storeDir`; Yarn's `globalFolder`; Bun's `install.cache.dir`; Pipenv's `WORKON_HOME`.
pub(crate) const PACKAGES: [PackageTool; 9] = [
    packages(
        "cargo",
        ".cargo",
        "registry git",
        Elsewhere::Home("CARGO_HOME"),
    ),
    packages("go", "go", "pkg", Elsewhere::Home("GOPATH")),
    packages(
        "maven",
        ".m2",
        "repository",
        Elsewhere::JavaOption("MAVEN_OPTS", "-Dmaven.repo.local"),
    ),
    // It does not start if it cannot write in all of these.
    packages(
        "gradle",
        ".gradle",
        ".tmp caches daemon jdks native notifications workers wrapper",
        Elsewhere::Home("GRADLE_USER_HOME"),
    ),
    packages(
        "nuget",
        ".nuget",
        "packages",
        Elsewhere::Packages("NUGET_PACKAGES"),
    ),
    packages(
        "pnpm",
        ".local/share/pnpm",
        "store",
        Elsewhere::Home("PNPM_HOME"),
    ),
    packages(
        "yarn",
        ".yarn/berry",
        "cache index metadata",
        Elsewhere::Home("YARN_GLOBAL_FOLDER"),
    ),
    packages(
        "bun",
        ".bun",
        "install/cache",
        Elsewhere::Packages("BUN_INSTALL_CACHE_DIR"),
    ),
    // Those of other projects stay closed.
    packages(
        "pipenv",
        ".local/share/virtualenvs",
        "",
        Elsewhere::Home("WORKON_HOME"),
    ),
];

/// The default of the setting `read_roots`: directories where toolchains keep the sources of dependencies.
pub(crate) const READ_ROOTS: &str = "/usr/include ~/.cargo/registry ~/.cargo/git ~/.rustup/toolchains ~/go/pkg/mod \
 ~/.m2/repository ~/.gradle/caches ~/.nuget/packages";

/// Returns the paths of credentials, histories and browser profiles, relative to the home directory. They are never readable,
/// even if the workspace is the home directory.
pub(crate) fn secrets() -> impl Iterator<Item = &'static str> {
    SECRETS.split_whitespace().chain(SPACED_SECRETS)
}

const SECRETS: &str = "
.ssh .aws .azure .gnupg .kube .docker .netrc _netrc .authinfo .authinfo.gpg .git-credentials
.config/git/credentials .npmrc .yarnrc .yarnrc.yml .pypirc .cargo/credentials .cargo/credentials.toml
.gem/credentials .bundle .cabal/config .dotnet/corefx .julia/logs .local/share/uv/credentials
.nimble/github_api_token .opam/plugins/opam-publish .rye/credentials .stack/upload .m2/settings.xml
.m2/settings-security.xml .gradle/gradle.properties .nuget/NuGet .config/NuGet .composer/auth.json
.config/composer .julia/servers .pgpass .my.cnf .mylogin.cnf .pg_service.conf .s3cfg .boto .oci .databrickscfg
.vault-token .terraform.d .terraformrc .fly .heroku .config/gh .config/glab-cli .config/hub .config/gcloud
.config/op .config/sops .config/age .config/rclone .config/containers .config/doctl .config/github-copilot
.config/pip .config/pypoetry .config/helm .cache/huggingface .huggingface .kaggle .password-store
.local/share/keyrings .local/share/kwalletd .local/share/gnome-keyring .pki .electrum .bitcoin .ethereum
.mozilla .thunderbird .config/google-chrome .config/chromium .config/BraveSoftware .config/microsoft-edge
.config/vivaldi .config/opera .config/Signal .config/Slack .config/discord .var/app snap .msmtprc .fetchmailrc
.mbsyncrc .offlineimaprc .muttrc .mutt .bash_history .zsh_history .zhistory .histfile .history .sh_history
.ksh_history .local/share/fish .local/share/atuin .local/share/nushell .python_history .node_repl_history
.irb_history .psql_history .mysql_history .sqlite_history .rediscli_history .mongosh .lesshst .viminfo
.wget-hsts .local/state/nvim .local/share/nvim/shada .Xauthority .ICEauthority Library/Keychains
Library/Cookies
";

/// Secret paths that contain spaces.
const SPACED_SECRETS: [&str; 2] = [
    "Library/Application Support/Google",
    "Library/Application Support/Firefox",
];
