//! The paths below the home directory that confined commands may read, and those that they must never read.
//!
//! **Add a toolchain to `home.toml`, and a secret path to `SECRETS`.**

use std::sync::LazyLock;

use serde::Deserialize;

/// A toolchain: its home directories, its variables, and the readable paths. Each field is a list of words.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Toolchain {
    homes: String,
    variables: String,
    places: String,
}

/// A toolchain that keeps downloaded packages below the home directory.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PackageTool {
    /// The name of the toolchain, which is also the name of the directory for its packages in the layer of a trial.
    pub(crate) name: String,
    /// The home of the toolchain, relative to the person's home directory.
    pub(crate) home: String,
    #[serde(default)]
    places: String,
    pub(crate) relocation: PackageRelocation,
}

/// The way to make a toolchain keep its packages in another directory.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PackageRelocation {
    /// Sets a variable that names the home of the toolchain.
    Home(String),
    /// Sets a variable that names the directory of the packages.
    Packages(String),
    /// Sets a variable with options for Java, and an option in it that names the directory of the packages.
    JavaOption(String, String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolchainTable {
    toolchains: Vec<Toolchain>,
    git: Toolchain,
    packages: Vec<PackageTool>,
}

static TABLE: LazyLock<ToolchainTable> = LazyLock::new(|| {
    toml::from_str(include_str!("home.toml")).expect("the built-in table is tested to parse")
});

/// Returns the toolchains: their homes, their variables, and the readable paths in the homes.
pub(crate) fn toolchains() -> impl Iterator<Item = &'static Toolchain> {
    TABLE.toolchains.iter().chain([git()])
}

/// Returns the files that git reads in `~/.config/git`.
pub(crate) fn git() -> &'static Toolchain {
    &TABLE.git
}

/// Returns the toolchains whose packages a trial may download, into a layer.
pub(crate) fn package_tools() -> &'static [PackageTool] {
    &TABLE.packages
}

/// Returns the names of all variables that can name the home of a toolchain.
pub(crate) fn variables() -> impl Iterator<Item = &'static str> {
    toolchains().flat_map(Toolchain::variables)
}

impl Toolchain {
    /// Returns the home directories of the toolchain, relative to the person's home directory.
    pub(crate) fn homes(&self) -> impl Iterator<Item = &str> {
        self.homes.split_whitespace()
    }

    /// Returns the variables that can name another home of the toolchain.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.split_whitespace()
    }

    /// Returns the readable paths, relative to each home of the toolchain. A star matches any part of a name. If there are no
    /// paths, the whole home is readable, because it contains only code.
    pub(crate) fn places(&self) -> impl Iterator<Item = &str> {
        self.places.split_whitespace()
    }
}

impl PackageTool {
    /// Returns the directories to which the toolchain downloads packages, relative to its home.
    pub(crate) fn places(&self) -> impl Iterator<Item = &str> {
        self.places.split_whitespace()
    }
}

impl PackageRelocation {
    pub(crate) fn variable(&self) -> &str {
        match self {
            Self::Home(name) | Self::Packages(name) | Self::JavaOption(name, _) => name,
        }
    }
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
