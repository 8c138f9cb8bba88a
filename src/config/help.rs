//! The section of the help that lists the settings.

use super::table::{Setting, TABLE};

/// Columns of a help file.
const WIDTH: usize = 78;

/// Returns the section's text: an entry for each setting, a blank line between two.
pub fn help() -> String {
    let entries: Vec<String> = TABLE.iter().map(entry).collect();
    entries.join("\n")
}

fn entry(setting: &Setting) -> String {
    let tag = format!("*co-{}*", setting.name);
    let room = WIDTH - setting.name.len();
    let mut text = format!("{}{tag:>room$}\n", setting.name);
    let default = match setting.default {
        "" => "(an empty list)",
        other => other,
    };
    fill(&mut text, &sentence(&setting.kind.accepts()));
    fill(&mut text, &format!("Default: {default}"));
    fill(&mut text, &format!("Environment: ${}", setting.variable()));
    if !setting.former.is_empty() {
        fill(
            &mut text,
            &format!("Formerly: {}", setting.former.join(", ")),
        );
    }
    fill(&mut text, &format!("Applies: {}", setting.applies.words()));
    fill(&mut text, setting.help);
    text
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

/// Adds `words` in indented lines no wider than the help. Long lists break at their commas.
fn fill(text: &mut String, words: &str) {
    const INDENT: &str = "    ";
    let mut width = 0;
    for word in words.split(' ') {
        for part in word.split_inclusive(',') {
            let starts_word = part.as_ptr() == word.as_ptr();
            let space = usize::from(starts_word && width > 0);
            if width == 0 || width + space + part.chars().count() > WIDTH {
                if width > 0 {
                    text.push('\n');
                }
                text.push_str(INDENT);
                width = INDENT.len();
            } else if space == 1 {
                text.push(' ');
                width += 1;
            }
            text.push_str(part);
            width += part.chars().count();
        }
    }
    text.push('\n');
}
