//! Recognizes secret files by their names. It reads no file.

use std::path::{Component, Path};

/// Returns the first component of a path that names a secret. Source text in a directory such as `src/secrets` is no
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

/// True for the name of a directory that contains secrets in one project and source text in another.
pub fn holds_source(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower == "secrets" || lower.starts_with("credentials")
}

/// True for the name of a secret file or directory.
pub fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let lower = lower.as_str();
    if let Some(rest) = dotenv(lower) {
        return !rest
            .rsplit(['.', '-'])
            .next()
            .is_some_and(|last| ["example", "sample", "template"].contains(&last));
    }
    const NAMES: [&str; 22] = [
        ".envrc",
        ".netrc",
        "_netrc",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        ".htpasswd",
        ".ssh",
        ".aws",
        ".gnupg",
        ".kube",
        ".docker",
        ".pgpass",
        ".azure",
        "secrets",
        ".git",
        ".vault-token",
        ".my.cnf",
        "kubeconfig",
        "kubeconfig.json",
        "kubeconfig.yaml",
        "kubeconfig.yml",
    ];
    const ENDS: [&str; 9] = [
        ".pem",
        ".key",
        ".p12",
        ".pfx",
        ".kdbx",
        ".tfstate",
        ".keystore",
        ".jks",
        ".kubeconfig",
    ];
    NAMES.contains(&lower)
        || ENDS.iter().any(|end| lower.ends_with(end))
        || is_key(lower) && !is_source(lower)
        || lower.starts_with("credentials") && !is_source(lower)
        || [
            "secrets.yaml",
            "secrets.yml",
            "secrets.json",
            "secrets.toml",
        ]
        .contains(&lower)
}

/// Returns the variable part in the name of a dotenv file: `.env.local`, `.env-prod`, `prod.env`.
fn dotenv(lower: &str) -> Option<&str> {
    match lower.strip_prefix(".env") {
        Some(rest) if rest.is_empty() || rest.starts_with(['.', '-']) => Some(rest),
        _ => lower.strip_suffix(".env"),
    }
}

/// True for the name of an SSH private key, with any suffix: `id_rsa`, `id_rsa.bak`, `id_ed25519-work`.
pub fn is_key(lower: &str) -> bool {
    let kinds = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_xmss"];
    let rest = kinds.iter().find_map(|kind| lower.strip_prefix(kind));
    let suffix = |rest: &str| rest.is_empty() || rest.starts_with(['.', '-', '_', '~']);
    rest.is_some_and(suffix) && !lower.ends_with(".pub")
}

/// True for the name of a source or text file, such as `id_rsa_test.go`. Only its content can make it a secret.
pub fn is_source(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    const KINDS: [&str; 20] = [
        "c", "cc", "cpp", "cs", "css", "go", "h", "html", "java", "js", "kt", "lua", "md", "php",
        "py", "rb", "rs", "sh", "swift", "ts",
    ];
    lower
        .rsplit_once('.')
        .is_some_and(|(_, kind)| KINDS.contains(&kind))
}

/// Globs of secret names that a search skips unless its glob names them.
pub const HIDDEN: &str = ".env .env.* .env-* .env.local .env.dev .env.development .env.prod .env.production .env.staging \
    .env.test .envrc .netrc _netrc .npmrc .pypirc .pgpass .my.cnf .git-credentials .htpasswd .vault-token .git .ssh .aws \
    .gnupg .kube .docker .azure";
/// Globs of the other secret names.
pub const PLAIN: &str = "*.pem *.key *.p12 *.pfx *.kdbx *.tfstate *.keystore *.jks *.env id_* id_rsa credentials* secrets \
    credentials.json secrets.yaml secrets.yml secrets.json secrets.toml kubeconfig";

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
            "id_ed25519-work.pub",
            "id_map.py",
            "id_rsa_test.go",
            "id_rsability",
            "auth.json",
            "kubeconfig.go",
            "credentials.rs",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
