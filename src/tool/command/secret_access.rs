//! Decides which hidden secret files a confined command may read: the files that the command names, if the person approves the
//! command.

use std::path::{Path, PathBuf};

use crate::services::Services;
use co_exec::secrets;
use co_exec::{Confinement, Program, ShownSecrets};
use co_text::code;

/// Returns the hidden secret files that a command names; empty if the confinement hides no secrets.
pub(crate) async fn named(
    services: &Services,
    confinement: &Confinement,
    cwd: &Path,
    words: Vec<Vec<String>>,
) -> Vec<PathBuf> {
    let Some(launcher) = services.executor.launcher().cloned() else {
        return Vec::new();
    };
    let (confinement, cwd) = (confinement.clone(), cwd.to_owned());
    let look = move || {
        let survey = launcher.survey(&confinement);
        survey.map(|survey| secrets::named(&words, &cwd, &survey))
    };
    // If it fails, all stays hidden.
    let found = tokio::task::spawn_blocking(look).await.ok().flatten();
    found.unwrap_or_default()
}

/// Returns the confinement of a command that the person typed. In this confinement, the command can read the secret files that it
/// names.
pub async fn open_named(
    services: &Services,
    mut confinement: Confinement,
    command: &str,
    cwd: &Path,
) -> Confinement {
    if confinement.shown_mut().is_none() {
        return confinement;
    }
    let Some(workspace) = confinement.workspace() else {
        return confinement;
    };
    let judge = services.judge(workspace);
    let (program, here) = (Program::Shell(command.to_owned()), cwd.to_owned());
    let read =
        tokio::task::spawn_blocking(move || judge.assess(&program, &here, true).words()).await;
    let secrets = named(services, &confinement, cwd, read.unwrap_or_default()).await;
    open(confinement, secrets)
}

/// Returns the confinement in which a command can read these secret files. Only some kinds of confinement support that. Any other
/// confinement stays as it is.
pub(crate) fn open(mut confinement: Confinement, secrets: Vec<PathBuf>) -> Confinement {
    if let Some(shown) = confinement.shown_mut()
        && *shown == ShownSecrets::Nothing
        && !secrets.is_empty()
    {
        *shown = ShownSecrets::These(secrets);
    }
    confinement
}

/// Returns a sentence about these secret files for the question about a command. Returns `None` if there are no such files.
pub(crate) fn reason(secrets: &[PathBuf], workspace: &Path) -> Option<String> {
    let name = |path: &PathBuf| {
        let shown = path.strip_prefix(workspace).unwrap_or(path);
        let name = code(&shown.display().to_string());
        match path.is_dir() {
            true => format!("everything in {name}"),
            false => name,
        }
    };
    let names: Vec<String> = secrets.iter().map(name).collect();
    (!names.is_empty()).then(|| format!("a yes lets it open {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use co_exec::Network;

    fn held(shown: ShownSecrets) -> Confinement {
        Confinement::Workspace {
            workspace: "/w".into(),
            network: Network::None,
            shown,
        }
    }

    #[test]
    fn only_a_confinement_that_hides_secrets_opens_some() {
        let env = || vec![PathBuf::from("/w/.env")];
        assert_eq!(
            open(held(ShownSecrets::Nothing), env()),
            held(ShownSecrets::These(env()))
        );
        for other in [
            held(ShownSecrets::Everything),
            Confinement::Plain,
            Confinement::ReadOnly {
                workspace: "/w".into(),
            },
        ] {
            assert_eq!(open(other.clone(), env()), other);
        }
        assert_eq!(
            open(held(ShownSecrets::Nothing), vec![]),
            held(ShownSecrets::Nothing)
        );
    }

    #[test]
    fn a_question_says_what_a_yes_opens() {
        let dir = tempfile::tempdir().unwrap();
        let paths = [".env", "secrets"].map(|name| dir.path().join(name));
        std::fs::create_dir(&paths[1]).unwrap();
        assert_eq!(
            reason(&paths, dir.path()).unwrap(),
            "a yes lets it open `.env`, everything in `secrets`"
        );
        assert_eq!(reason(&[], dir.path()), None);
    }
}
