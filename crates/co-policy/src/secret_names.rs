//! The names of secret files and directories. All parts of co use this list. This module reads no file.

use std::collections::HashSet;
use std::path::{Component, Path};
use std::sync::LazyLock;

/// Files with the environment of a program, which may contain secrets. In a pattern, `*` stands for any text.
pub const ENVIRONMENTS: [&str; 7] = [
    ".env",
    ".env.*",
    ".env-*",
    ".env_*",
    "*.env",
    ".dev.vars",
    ".dev.vars.*",
];

/// SSH private keys. A suffix after `.`, `-` or `_` may follow the name.
pub const KEYS: [&str; 6] = [
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_xmss",
    "deploy_key",
];

/// Secret files of other kinds. In a pattern, `*` stands for any text.
pub const FILES: [&str; 38] = [
    "*.pem",
    "*.key",
    "*.p8",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.kdbx",
    "*.keystore",
    "*.jks",
    "*.tfstate",
    "terraform.tfstate.*",
    "*.tfvars",
    "*.tfvars.json",
    "*.ovpn",
    "wg0.conf",
    "wg1.conf",
    "wg-*.conf",
    "*.kubeconfig",
    "kubeconfig",
    "kubeconfig.json",
    "kubeconfig.yaml",
    "kubeconfig.yml",
    "secrets.json",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    "credentials*",
    ".envrc",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".htpasswd",
    ".vault-token",
];

/// Directories whose whole content is secret.
pub const DIRECTORIES: [&str; 8] = [
    "secrets", ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".git",
];

/// The words that mark a file without secrets, as the last or the second last part of its name: `.env.example`, `public.key`.
pub const STAND_INS: [&str; 5] = ["example", "sample", "template", "public", "pub"];

/// Marks that editors and backups add before or after a name.
pub const MARKS: [&str; 9] = [
    "~", "#", "_", ".bak", ".backup", ".old", ".orig", ".swp", ".swo",
];

/// Extensions of source text. Such a file is secret only because of its content, not its name.
pub const SOURCES: [&str; 36] = [
    "c", "cc", "cjs", "cpp", "cs", "css", "dart", "erb", "ex", "exs", "go", "h", "hpp", "hs",
    "html", "java", "js", "jsx", "kt", "lua", "md", "mjs", "php", "pl", "py", "rb", "rs", "scala",
    "scss", "sh", "svelte", "swift", "ts", "tsx", "vue", "zig",
];

/// Returns the first component of a path that is the name of a secret. Source text in a directory such as `src/secrets` is not
/// secret.
pub fn secret(path: &Path) -> Option<&str> {
    let file = path.file_name().and_then(|name| name.to_str());
    let source = file.is_some_and(is_source);
    path.components().find_map(|component| match component {
        Component::Normal(name) => name
            .to_str()
            .filter(|name| is_secret(name) && !(source && holds_source(name))),
        _ => None,
    })
}

/// Returns true for the name of a secret file or directory.
pub fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let bare = without_marks(&lower);
    let is = |patterns: &Patterns| {
        patterns.match_name(bare)
            // A hidden file is as secret: `.secrets.toml`.
            || bare.strip_prefix('.').is_some_and(|name| patterns.match_name(name))
            // `_netrc` begins with a mark.
            || patterns.names.contains(lower.as_str())
    };
    if is_stand_in(bare) {
        return false;
    }
    is(&ENVIRONMENT_PATTERNS)
        || !has_source_extension(bare) && (is_key_or_suffixed(bare) || is(&OTHER_PATTERNS))
}

/// Returns true for the name of a directory that contains secrets in some projects and source text in others.
pub fn holds_source(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let bare = without_dot(without_marks(&lower));
    bare == "secrets" || bare.starts_with("credentials")
}

/// Returns true for the name of an SSH private key, with any suffix: `id_rsa`, `id_rsa.bak`, `id_ed25519-work`.
pub fn is_key(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let bare = without_marks(&lower);
    is_key_or_suffixed(bare) && !is_stand_in(bare)
}

/// Returns true for the name of a source or text file, such as `id_rsa_test.go`.
pub fn is_source(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    has_source_extension(without_marks(&lower))
}

fn is_key_or_suffixed(bare: &str) -> bool {
    let name = without_dot(bare);
    let rest = KEYS.iter().find_map(|kind| name.strip_prefix(kind));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_']))
}

fn has_source_extension(bare: &str) -> bool {
    bare.rsplit_once('.')
        .is_some_and(|(_, extension)| SOURCES.contains(&extension))
}

fn is_stand_in(bare: &str) -> bool {
    let mut last = bare.rsplit(['.', '-', '_']).take(2);
    last.any(|part| STAND_INS.contains(&part))
}

/// Returns a name without the marks of editors and backups: `.env` for `.env.swp`, `server.key` for `server.key.bak~`.
fn without_marks(lower: &str) -> &str {
    let mut bare = lower;
    loop {
        let mut rest = bare.trim_start_matches(['#', '_']);
        for mark in MARKS {
            if let Some(before) = rest.strip_suffix(mark) {
                rest = before;
            }
        }
        if rest == bare {
            return bare;
        }
        bare = rest;
    }
}

/// Returns a name without its leading dot. vim adds a dot to the name of a swap file, unless the file's own name begins with a
/// dot.
fn without_dot(name: &str) -> &str {
    name.strip_prefix('.').unwrap_or(name)
}

static ENVIRONMENT_PATTERNS: LazyLock<Patterns> =
    LazyLock::new(|| ENVIRONMENTS.into_iter().collect());
static OTHER_PATTERNS: LazyLock<Patterns> =
    LazyLock::new(|| FILES.into_iter().chain(DIRECTORIES).collect());

/// Patterns for names. They are split once, because a search checks the name of each file.
struct Patterns {
    /// The patterns without `*`.
    names: HashSet<&'static str>,
    /// The texts before and after the `*` of each other pattern.
    ends: Vec<(&'static str, &'static str)>,
}

impl Patterns {
    fn match_name(&self, name: &str) -> bool {
        let mut ends = self.ends.iter();
        self.names.contains(name)
            || ends.any(|(start, end)| {
                name.len() >= start.len() + end.len()
                    && name.starts_with(start)
                    && name.ends_with(end)
            })
    }
}

impl FromIterator<&'static str> for Patterns {
    fn from_iter<T: IntoIterator<Item = &'static str>>(patterns: T) -> Self {
        let (mut names, mut ends) = (HashSet::new(), Vec::new());
        for pattern in patterns {
            match pattern.split_once('*') {
                Some(both) => ends.push(both),
                None => {
                    names.insert(pattern);
                }
            }
        }
        Self { names, ends }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{is_secret, secret};

    #[test]
    fn a_directory_of_secrets_may_hold_source_text() {
        for (path, found) in [
            ("src/secrets/mod.rs", None),
            ("src/secrets/deep/mod.rs", None),
            ("credentials/store.go", None),
            ("src/secrets/db.txt", Some("secrets")),
            ("src/secrets", Some("secrets")),
            ("src/.secrets/mod.rs", None),
            ("src/.secrets/db.txt", Some(".secrets")),
            (".ssh/x.py", Some(".ssh")),
            ("secrets/.aws/x.py", Some(".aws")),
            ("credentials.json/x", Some("credentials.json")),
        ] {
            assert_eq!(secret(Path::new(path)), found, "{path}");
        }
    }

    #[test]
    fn names_of_secrets() {
        for name in [
            ".env",
            ".env.local",
            ".ENV",
            "server.pem",
            "server.key",
            "a.p12",
            "a.pfx",
            "a.kdbx",
            "a.tfstate",
            "a.keystore",
            "a.jks",
            "id_rsa",
            "id_ed25519",
            ".netrc",
            "credentials.json",
            "secrets",
            "secrets.yaml",
            "x.tfstate",
            ".git",
            ".ssh",
            ".env-prod",
            "prod.env",
            "id_rsa.bak",
            "id_rsa~",
            "id_ecdsa_sk",
            "id_ed25519-work",
            ".my.cnf",
            ".pgpass",
            "kubeconfig",
            "dev.kubeconfig",
            ".env~",
            "..env.swp",
            ".env.swp",
            ".netrc.swo",
            ".id_rsa.swp",
            ".secrets.toml",
            ".secrets",
            ".credentials.json",
            "#.env#",
            ".env_prod",
            ".env.bak",
            ".env.backup~",
            ".dev.vars",
            ".dev.vars.staging",
            "terraform.tfstate.backup",
            "terraform.tfstate.1712345678.backup",
            "prod.tfvars",
            "prod.auto.tfvars.json",
            "AuthKey_1.p8",
            "putty.ppk",
            "deploy_key",
            "deploy_key.old",
            "server.key.bak",
            "server.key.orig",
            ".server.key.swp",
            "_server.key",
            "home.ovpn",
            "wg0.conf",
            ".yarnrc.yml",
            ".netrc~",
            "secrets.yaml.old",
            ".aws.bak",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            ".env.example",
            ".env.local.sample",
            ".env.template",
            "env",
            "key.rs",
            "id_rsa.pub",
            "id_map",
            "keys",
            ".gitignore",
            "secret.rs",
            "environment.rs",
            ".env-example",
            "example.env",
            "prod.sample.env",
            ".environment",
            ".env.example.swp",
            ".gitignore.swp",
            "id_ed25519-work.pub",
            "id_map.py",
            "id_rsa_test.go",
            "id_rsability",
            "auth.json",
            "kubeconfig.go",
            "credentials.rs",
            ".env.example~",
            ".env_example",
            ".env.sample.bak",
            ".dev.vars.example",
            "terraform.example.tfvars",
            "public.key",
            "jwt-public.pem",
            "deploy_key.pub",
            "deploy_keys",
            "deploy_key.rb",
            "environment.ts",
            "keyboard.rs",
            "main.rs.bak",
            "_mod.scss",
            "_credentials.scss",
            "Credentials.tsx",
            "wget.conf",
            "wg.conf",
            "_",
            "~",
            ".bak",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
