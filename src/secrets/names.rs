//! The names under which credentials are kept. Only names: no file is read.

use std::path::{Component, Path};

/// Returns the first component that has the name of a secret.
pub fn secret(path: &Path) -> Option<&str> {
    path.components().find_map(|component| match component {
        Component::Normal(name) => name.to_str().filter(|name| is_secret(name)),
        _ => None,
    })
}

/// True for the names under which credentials are kept.
pub fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let lower = lower.as_str();
    if lower == ".env" {
        return true;
    }
    if let Some(rest) = lower.strip_prefix(".env.") {
        return !["example", "sample", "template"]
            .iter()
            .any(|safe| rest == *safe || rest.ends_with(&format!(".{safe}")));
    }
    const NAMES: [&str; 17] = [
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
    ];
    const ENDS: [&str; 8] = [
        ".pem",
        ".key",
        ".p12",
        ".pfx",
        ".kdbx",
        ".tfstate",
        ".keystore",
        ".jks",
    ];
    NAMES.contains(&lower)
        || ENDS.iter().any(|end| lower.ends_with(end))
        || (lower.starts_with("id_") && !lower.contains('.') && KEY_KINDS.contains(&lower))
        || lower.starts_with("credentials")
        || [
            "secrets.yaml",
            "secrets.yml",
            "secrets.json",
            "secrets.toml",
        ]
        .contains(&lower)
}

const KEY_KINDS: [&str; 6] = [
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ecdsa_sk",
    "id_ed25519_sk",
];

/// Patterns of the names that a search passes over unless a glob names them.
pub const HIDDEN: &str = ".env .env.* .env-* .env.local .env.dev .env.development .env.prod .env.production .env.staging \
    .env.test .envrc .netrc _netrc .npmrc .pypirc .pgpass .my.cnf .git-credentials .htpasswd .vault-token .git .ssh .aws \
    .gnupg .kube .docker .azure";
/// Patterns of the other names.
pub const PLAIN: &str = "*.pem *.key *.p12 *.pfx *.kdbx *.tfstate *.keystore *.jks *.env id_* id_rsa credentials* secrets \
    credentials.json secrets.yaml secrets.yml secrets.json secrets.toml kubeconfig";

#[cfg(test)]
mod tests {
    use super::is_secret;

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
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
