//! Reads skills. A skill is a directory with a `SKILL.md`, whose text tells a model how to do one kind of work. The name of the
//! directory is the name of the skill. <https://agentskills.io/specification> describes the format.
//!
//! This module knows nothing of trust, questions or prompts.

use std::path::{Path, PathBuf};

use crate::trust::FileText;
use co_exec::beneath::{self, Dir};
use co_policy::secret_names;
use co_text::{one_line, start_of};

/// The file that contains the text of a skill.
const FILE: &str = "SKILL.md";

/// The directories of skills in a workspace. If two skills have the same name, the skill in the earlier directory is used. The
/// person's own skills have precedence over these.
pub const WORKSPACE_DIRS: [&str; 3] = [".co/skills", ".claude/skills", ".agents/skills"];

/// The largest number of skills.
const MOST: usize = 200;
/// The largest number of bytes of the texts of all skills.
const MOST_BYTES: usize = 8 << 20;
/// The largest number of bytes of the name of a skill.
const LONGEST_NAME: usize = 64;

/// The largest number of bytes of a skill's text that a model gets.
const LONGEST_TEXT: usize = 32 << 10;

/// The largest number of bytes of another file of a skill that co reads.
const LONGEST_FILE: u64 = 64 << 10;

/// A skill, in the state in which it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    /// The purpose of the skill as one line; empty if its text contains no description.
    pub description: String,
    pub file: FileText,
    /// True if the skill is in a directory of the person, and false if it is in the workspace.
    pub of_person: bool,
}

/// The skills of a chat, and a sentence about the first problem with a skill that cannot be used.
#[derive(Debug, Default)]
pub struct FoundSkills {
    pub skills: Vec<Skill>,
    pub problem: Option<String>,
    /// The number of bytes of the texts of these skills.
    bytes: usize,
}

impl FoundSkills {
    /// Reads the skills of a workspace, and the skills in the person's directories `of_person`.
    pub fn read(workspace: &Path, of_person: &[PathBuf]) -> Self {
        let mut found = Self::default();
        for dir in of_person {
            found.add(dir, true);
        }
        for dir in WORKSPACE_DIRS {
            found.add(&workspace.join(dir), false);
        }
        found
    }

    fn add(&mut self, dir: &Path, of_person: bool) {
        // Most of these directories do not exist.
        let Ok(real) = dir.canonicalize() else {
            return;
        };
        let names = match Dir::open(&real).and_then(|dir| dir.names()) {
            Ok(names) => names,
            Err(error) => return self.leave_out(dir, &error),
        };
        let names = names.into_iter().filter_map(|name| name.into_string().ok());
        let mut names: Vec<_> = names.filter(|name| is_name(name)).collect();
        names.sort();
        for name in names {
            if self.skills.len() >= MOST || self.bytes >= MOST_BYTES {
                let problem = || format!("co reads no more than {MOST} skills and 8 MiB of them");
                self.problem.get_or_insert_with(problem);
                return;
            }
            let path = dir.join(&name).join(FILE);
            match FileText::read(path.clone()) {
                Ok(file) => {
                    self.bytes += file.size;
                    self.skills.push(Skill {
                        description: description(&file.text),
                        name,
                        file,
                        of_person,
                    });
                }
                // Other files lie beside skills.
                Err(error) if is_missing(&error) => {}
                Err(error) => self.leave_out(&path, &error),
            }
        }
    }

    fn leave_out(&mut self, path: &Path, error: &std::io::Error) {
        let path = one_line(&path.display().to_string());
        let problem = || format!("{path} is left out: {error}");
        self.problem.get_or_insert_with(problem);
    }
}

impl Skill {
    /// Returns the directory of the skill.
    pub fn dir(&self) -> &Path {
        self.file.path.parent().unwrap_or(&self.file.path)
    }

    /// Returns the text of the skill for a model, at most 32 KiB, and a line about the other files of the skill.
    pub fn whole_text(&self) -> String {
        let text = self.file.text.trim();
        let start = start_of(text, LONGEST_TEXT);
        let cut = match start.len() < text.len() {
            true => "\n[The rest of the text is left out.]",
            false => "",
        };
        format!(
            "{start}{cut}\n\n[The files of this skill are in {}. The tool read_skill reads them.]",
            self.dir().display()
        )
    }

    /// Reads another file of the skill, which must not be larger than 64 KiB. Returns the canonical path and the text of the
    /// file. Blocks on files.
    ///
    /// # Errors
    /// The path leads out of the skill, leads through a symbolic link, or names a secret. Or the file cannot be read, or is too
    /// large.
    pub fn read(&self, path: &str) -> Result<(PathBuf, String), String> {
        let below = Path::new(path);
        if !below
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)))
        {
            return Err(format!("{path} is not below the directory of the skill."));
        }
        if let Some(secret) = secret_names::secret(below) {
            return Err(format!("{secret} may hold a secret."));
        }
        let read = || {
            let real = self.dir().canonicalize()?;
            let bytes = beneath::Dir::open(&real)?.read(below, LONGEST_FILE)?;
            Ok((real.join(below), bytes))
        };
        let (real, bytes) =
            read().map_err(|error: std::io::Error| format!("{path} cannot be read: {error}."))?;
        Ok((real, String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// Returns true if a directory with this name can be a skill.
fn is_name(name: &str) -> bool {
    name.len() <= LONGEST_NAME
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn is_missing(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
    )
}

/// Returns the description in the header of a skill. The header is the YAML between the first two lines `---`. The description
/// may be a plain text, a quoted text, or a block of indented lines.
fn description(text: &str) -> String {
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty());
    if lines.next().map(str::trim_end) != Some("---") {
        return String::new();
    }
    let mut header = lines.take_while(|line| line.trim_end() != "---");
    let Some(first) = header.find_map(|line| line.strip_prefix("description:")) else {
        return String::new();
    };
    let first = first.trim();
    let is_block = matches!(first, ">" | "|" | ">-" | "|-" | ">+" | "|+");
    let start = if is_block { "" } else { first };
    let rest = header.take_while(|line| line.is_empty() || line.starts_with([' ', '\t']));
    let words = std::iter::once(start).chain(rest.map(str::trim));
    let words: Vec<_> = words.filter(|part| !part.is_empty()).collect();
    let whole = words.join(" ");
    let quoted = ['"', '\''].into_iter().find_map(|quote| {
        let inner = whole.strip_prefix(quote)?.strip_suffix(quote)?;
        Some(inner.replace(&format!("\\{quote}"), &quote.to_string()))
    });
    one_line(&quoted.unwrap_or(whole))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_description_is_that_of_the_header() {
        let of = |header: &str| description(&format!("---\n{header}\n---\nbody\n"));
        assert_eq!(of("name: x\ndescription: Makes  a b."), "Makes  a b.");
        assert_eq!(of("description: \"a \\\"b\\\" c\""), "a \"b\" c");
        assert_eq!(
            of("description: >-\n  one\n  two\n\n  three\nlicense: x"),
            "one two three"
        );
        assert_eq!(of("description: one\n  two"), "one two");
        assert_eq!(of("name: x"), "");
        assert_eq!(description("description: x"), "");
        assert_eq!(description(""), "");
        assert_eq!(description("---\ndescription: never ended"), "never ended");
    }

    #[test]
    fn skills_are_directories_with_a_text() {
        let root = tempfile::tempdir().unwrap();
        let [work, home] = ["work", "home"].map(|name| root.path().join(name));
        put(
            &work,
            ".claude/skills/b/SKILL.md",
            "---\ndescription: B\n---\n",
        );
        put(&work, ".claude/skills/a/SKILL.md", "text");
        put(&work, ".claude/skills/README.md", "no skill");
        put(&work, ".claude/skills/.hidden/SKILL.md", "no skill");
        put(&work, ".co/skills/b/SKILL.md", "first");
        put(&home, "skills/c/SKILL.md", "mine");
        fs::create_dir(work.join(".claude/skills/empty")).unwrap();
        let found = FoundSkills::read(&work, &[home.join("skills"), home.join("none")]);
        let names: Vec<_> = found
            .skills
            .iter()
            .map(|it| (it.name.as_str(), it.description.as_str(), it.of_person))
            .collect();
        let own = ("c", "", true);
        let expected = [own, ("b", "", false), ("a", "", false), ("b", "B", false)];
        assert_eq!(names, expected);
        assert_eq!(found.problem, None);
    }

    #[test]
    fn a_file_outside_of_the_skill_or_with_a_secret_is_not_read() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "secret", "s");
        put(root.path(), "skills/a/SKILL.md", "text");
        put(root.path(), "skills/a/more/ref.md", "reference");
        put(root.path(), "skills/a/.env", "KEY=1");
        put(root.path(), "skills/a/long", &"x".repeat(100_000));
        std::os::unix::fs::symlink("../../secret", root.path().join("skills/a/link")).unwrap();
        let found = FoundSkills::read(root.path(), &[root.path().join("skills")]);
        let skill = &found.skills[0];
        assert_eq!(skill.read("more/ref.md").unwrap().1, "reference");
        for path in [
            "../../secret",
            "/etc/passwd",
            "link",
            ".env",
            "more",
            "none",
        ] {
            skill.read(path).unwrap_err();
        }
    }

    #[test]
    fn a_repository_of_many_and_large_skills_is_not_read_whole() {
        let root = tempfile::tempdir().unwrap();
        let large = "x".repeat(1 << 20);
        put(root.path(), "large.md", &large);
        for at in 0..30 {
            let dir = root.path().join(format!(".co/skills/{at}"));
            fs::create_dir_all(&dir).unwrap();
            std::os::unix::fs::symlink("../../../large.md", dir.join(FILE)).unwrap();
        }
        put(root.path(), "home/skills/mine/SKILL.md", "mine");
        let found = FoundSkills::read(root.path(), &[root.path().join("home/skills")]);
        assert_eq!(found.skills[0].name, "mine");
        assert!(found.skills.len() < 12, "{}", found.skills.len());
        assert!(found.problem.unwrap().contains("no more than"));
    }
}
