//! Finds the paths of toolchains on this machine, by the home directory and by the command's variables.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use memchr::memmem;

use super::path::{self, KnownPlaces};
use super::place_pattern::expand;
use super::real_paths::RealPaths;
use crate::beneath;
use crate::places::home::{self, CERTIFICATES};

const PATH: &str = "PATH";
const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
const GIT_CONFIG_GLOBAL: &str = "GIT_CONFIG_GLOBAL";

/// The most bytes of a file with certificates. The certificate files of systems have about 300 KB.
const MAX_CERTIFICATES: u64 = 4 << 20;

/// The name of a variable, and a path in its value.
pub(super) type NamedPath = (&'static str, PathBuf);

/// Returns the absolute paths that the command's variables name.
pub(super) fn named(env: &[(OsString, OsString)]) -> Vec<NamedPath> {
    let variables = home::variables();
    let variables = variables.chain([PATH, XDG_CONFIG_HOME, GIT_CONFIG_GLOBAL]);
    let variables = variables.chain(CERTIFICATES);
    let value = |name: &str| env.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v);
    variables
        .filter_map(|name| Some((name, value(name)?)))
        .flat_map(|(name, value)| std::env::split_paths(value).map(move |path| (name, path)))
        .filter(|(_, path)| path.is_absolute())
        .collect()
}

/// Returns the file that a variable makes git read as the person's configuration.
pub(super) fn git_config(named: &[NamedPath]) -> impl Iterator<Item = PathBuf> {
    let files = named.iter().filter(|(name, _)| *name == GIT_CONFIG_GLOBAL);
    files.map(|(_, path)| path.clone())
}

/// Returns the paths of all toolchains and of the tools on PATH. The paths may not exist. Adds the directories that were listed
/// during the search to `listed`.
pub(super) fn places(
    home: &Path,
    workspace: &Path,
    named: &[NamedPath],
    (real_paths, listed): (&mut RealPaths, &mut Vec<PathBuf>),
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut tools = Vec::new();
    for tool in home::toolchains() {
        let by_name = tool.homes().map(|name| home.join(name));
        let by_variable = named
            .iter()
            // A directory above the home directory is no toolchain, even if a variable names it.
            .filter(|(name, path)| {
                tool.variables().any(|it| it == *name) && !home.starts_with(path)
            })
            .map(|(_, path)| path.clone());
        for base in by_name.chain(by_variable) {
            if tool.places().next().is_none() {
                found.push(base);
                continue;
            }
            for place in tool.places() {
                expand(&base, place, &mut found, listed);
            }
            tools.extend(real_paths.find(&base));
        }
    }
    let mut certificates = HashSet::new();
    for (name, path) in named {
        match *name {
            XDG_CONFIG_HOME => home::git()
                .places()
                .for_each(|place| expand(&path.join("git"), place, &mut found, listed)),
            GIT_CONFIG_GLOBAL => found.push(path.clone()),
            // Several variables may name one file, which has hundreds of kilobytes.
            name if CERTIFICATES.contains(&name) && certificates.insert(path) => {
                listed.push(path.clone());
                found.extend(has_only_certificates(path).then(|| path.clone()));
            }
            _ => {}
        }
    }
    let dirs = named.iter().filter(|(name, _)| *name == PATH);
    let surroundings = KnownPlaces {
        home,
        workspace,
        tools: &tools,
    };
    let dirs = dirs.map(|(_, dir)| dir.as_path());
    found.extend(path::places(dirs, &surroundings, (real_paths, listed)));
    found
}

/// Returns true if a file contains certificates but no private key.
fn has_only_certificates(path: &Path) -> bool {
    let text = beneath::read_resolved(path, MAX_CERTIFICATES).unwrap_or_default();
    let has = |words: &[u8]| memmem::find(&text, words).is_some();
    has(b"-----BEGIN CERTIFICATE-----") && !has(b"PRIVATE KEY")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_certificates_is_granted_unless_it_has_a_key() {
        let dir = tempfile::tempdir().unwrap();
        let certificate = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n";
        let check = |text: &str, expected: bool| {
            let path = dir.path().join("ca.crt");
            std::fs::write(&path, text).unwrap();
            let env = [("SSL_CERT_FILE".into(), path.clone().into_os_string())];
            let looked = (&mut RealPaths::default(), &mut Vec::new());
            let places = places(dir.path(), Path::new("/w"), &named(&env), looked);
            assert_eq!(places.contains(&path), expected, "{text}");
        };
        check(certificate, true);
        check(
            &format!("{certificate}-----BEGIN RSA PRIVATE KEY-----\n"),
            false,
        );
        check("password", false);
    }

    #[test]
    fn no_home_of_a_tool_is_granted_whole() {
        for tool in home::toolchains() {
            assert!(tool.homes().next().is_none() || tool.places().next().is_some());
            for place in tool.places() {
                assert!(!place.starts_with("*") || place.len() > 1, "{place}");
                assert!(!place.ends_with("/*"), "{place}");
            }
        }
    }
}
