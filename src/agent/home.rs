//! The private directory of a confined agent. It has links to the entries of the person's directory that the agent may read or
//! write.

use std::io;
use std::path::{Path, PathBuf};

use super::preset::{AgentHome, HomePart};
use crate::paths::private_dir;
use co_exec::GrantedPlaces;
use co_exec::beneath::Dir;

/// Makes the directory `own` of an agent, and adds the paths that the agent may use to `places`. `of_person` lists the person's
/// directory for each part of `home`.
///
/// The agent may change everything in `own`, even while this function runs. So the function makes and removes entries relative to
/// the directory descriptor of `own`, and follows no symbolic link.
///
/// # Errors
/// The directory cannot be made.
pub(super) fn prepare(
    own: &Path,
    home: &AgentHome,
    of_person: &[PathBuf],
    places: &mut GrantedPlaces,
) -> io::Result<()> {
    private_dir(own)?;
    places.write.push(own.to_owned());
    let own = Dir::open_own(own)?;
    for (_, inside) in home.variables {
        make_inside(&own, inside)?;
    }
    for (part, of_person) in home.parts.iter().zip(of_person) {
        let inside = make_inside(&own, part.inside)?;
        link(&inside.path(), part, of_person, places);
    }
    Ok(())
}

/// Makes a directory inside the agent's directory. Removes anything else that the agent put in its place.
fn make_inside(own: &Dir, inside: &str) -> io::Result<Dir> {
    let mut dir = own.dir("")?;
    for name in Path::new(inside) {
        if dir.dir(name).is_err() {
            remove(&dir.path().join(name));
        }
        dir = dir.make_dirs(name)?;
    }
    Ok(dir)
}

/// Makes links in the directory `inside` to the entries of the person's directory `of_person`.
fn link(inside: &Path, part: &HomePart, of_person: &Path, places: &mut GrantedPlaces) {
    let read = part.read.iter().map(|name| (name, false));
    let write = part.write.iter().map(|name| (name, true));
    for (name, is_written) in read.chain(write) {
        let (target, link) = (of_person.join(name), inside.join(name));
        if !target.exists() {
            // The agent obeys what it reads here. If the person has none, nor has the agent.
            if !is_written {
                remove(&link);
            }
            continue;
        }
        let granted = match is_written {
            true => &mut places.write,
            false => &mut places.read,
        };
        granted.push(target.clone());
        replace_by_link(&target, &link);
    }
}

/// Makes a symbolic link. Removes anything else that the agent put in its place.
fn replace_by_link(target: &Path, link: &Path) {
    let is_there = std::fs::read_link(link).is_ok_and(|to| to == target);
    if is_there {
        return;
    }
    remove(link);
    if let Err(error) = std::os::unix::fs::symlink(target, link) {
        tracing::warn!(%error, link = %link.display(), "no link for an agent");
    }
}

/// Removes a file, a symbolic link, or a directory with all its content.
fn remove(path: &Path) {
    let is_directory = path.symlink_metadata().is_ok_and(|it| it.is_dir());
    let removed = match is_directory {
        true => std::fs::remove_dir_all(path),
        false => std::fs::remove_file(path),
    };
    if let Err(error) = removed
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, path = %path.display(), "an entry of an agent cannot be removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const HOME: AgentHome = AgentHome {
        variables: &[("X_HOME", ""), ("X_CACHE", "cache")],
        parts: &[HomePart {
            of_person: ".x",
            inside: "",
            read: &["settings", "missing", "rules"],
            write: &["login"],
        }],
    };

    #[test]
    fn a_part_may_lie_inside_and_no_link_of_the_agent_leads_out() {
        const INSIDE: AgentHome = AgentHome {
            variables: &[("X_HOME", "")],
            parts: &[HomePart {
                of_person: ".x",
                inside: "config/x",
                read: &["settings", "missing"],
                write: &[],
            }],
        };
        let dir = tempfile::tempdir().unwrap();
        let (own, person) = (dir.path().join("agents/x"), dir.path().join(".x"));
        let outside = dir.path().join("outside");
        fs::create_dir_all(&person).unwrap();
        fs::write(person.join("settings"), "settings").unwrap();
        fs::create_dir_all(outside.join("x/missing")).unwrap();
        private_dir(&own).unwrap();
        std::os::unix::fs::symlink(&outside, own.join("config")).unwrap();
        for _ in 0..2 {
            let mut places = GrantedPlaces::default();
            prepare(&own, &INSIDE, std::slice::from_ref(&person), &mut places).unwrap();
            assert_eq!(places.read, [person.join("settings")]);
            let link = fs::read_link(own.join("config/x/settings")).unwrap();
            assert_eq!(link, person.join("settings"));
        }
        assert!(own.join("config").symlink_metadata().unwrap().is_dir());
        assert!(outside.join("x/missing").exists() && !outside.join("x/settings").exists());
    }

    #[test]
    fn the_agent_reads_settings_and_writes_its_login_and_nothing_else_of_the_person() {
        let dir = tempfile::tempdir().unwrap();
        let (own, person) = (dir.path().join("agents/x"), dir.path().join(".x"));
        fs::create_dir_all(person.join("rules")).unwrap();
        for name in ["settings", "login", "hooks"] {
            fs::write(person.join(name), name).unwrap();
        }
        let homes = [person.clone()];
        let mut places = GrantedPlaces::default();
        for _ in 0..2 {
            places = GrantedPlaces::default();
            prepare(&own, &HOME, &homes, &mut places).unwrap();
        }
        assert_eq!(places.read, [person.join("settings"), person.join("rules")]);
        assert_eq!(places.write, [own.clone(), person.join("login")]);
        assert_eq!(fs::read_to_string(own.join("login")).unwrap(), "login");
        assert!(own.join("cache").is_dir() && !own.join("hooks").exists());
        // What the agent put in the place of a link goes, and what it made of a name that the person does not have.
        fs::remove_file(own.join("login")).unwrap();
        fs::write(own.join("login"), "other").unwrap();
        fs::remove_file(own.join("rules")).unwrap();
        fs::create_dir_all(own.join("rules/more")).unwrap();
        fs::write(own.join("missing"), "obey me").unwrap();
        fs::write(own.join("sessions"), "a conversation").unwrap();
        prepare(&own, &HOME, &homes, &mut places).unwrap();
        assert_eq!(fs::read_to_string(own.join("login")).unwrap(), "login");
        assert_eq!(
            fs::read_link(own.join("rules")).unwrap(),
            person.join("rules")
        );
        assert!(!own.join("missing").exists() && own.join("sessions").exists());
        // A directory of a name that the person does not have goes too.
        fs::create_dir_all(own.join("missing/more")).unwrap();
        prepare(&own, &HOME, &homes, &mut places).unwrap();
        assert!(!own.join("missing").exists());
    }
}
