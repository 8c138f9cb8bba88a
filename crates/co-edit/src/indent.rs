//! The change of indentation between the lines of an edit and those of a file.

/// Returns the white space at the start of a line.
pub(crate) fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// The change that turns the indentation of an edit into the indentation of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum IndentShift<'a> {
    /// Adds this white space at the start of each line of the edit.
    Add(&'a str),
    /// Removes this white space from the start of each line of the edit.
    Remove(&'a str),
    /// Replaces one unit of indentation by another, such as a tab by four spaces.
    Unit {
        from: &'static str,
        to: &'static str,
    },
}

/// The units of indentation that co can tell apart.
const UNITS: [&str; 5] = ["\t", "    ", "  ", "        ", "   "];

impl<'a> IndentShift<'a> {
    /// Returns the shift that turns the first indentation of each pair into the second. Returns `None` if no shift fits all
    /// pairs.
    pub(crate) fn of(pairs: &[(&'a str, &'a str)]) -> Option<Self> {
        let (old, file) = *pairs.first()?;
        let added = file.strip_suffix(old).map(Self::Add);
        let removed = old.strip_suffix(file).map(Self::Remove);
        let units = UNITS.into_iter().flat_map(|from| {
            let others = UNITS.into_iter().filter(move |to| *to != from);
            others.map(move |to| Self::Unit { from, to })
        });
        let mut all = added.into_iter().chain(removed).chain(units);
        all.find(|shift| {
            let holds = |(old, file): &(&str, &str)| shift.apply(old).as_deref() == Some(*file);
            pairs.iter().all(holds)
        })
    }

    /// Returns the indentation of the file that corresponds to an indentation of the edit. Returns `None` if the shift cannot be
    /// applied to this indentation.
    pub(crate) fn apply(&self, indentation: &str) -> Option<String> {
        match self {
            Self::Add(added) => Some(format!("{added}{indentation}")),
            Self::Remove(removed) => indentation.strip_prefix(removed).map(str::to_owned),
            Self::Unit { from, to } => {
                let depth = indentation.len() / from.len();
                (from.repeat(depth) == indentation).then(|| to.repeat(depth))
            }
        }
    }
}

/// Returns true if an indentation has both tabs and spaces.
pub(crate) fn is_mixed(indentation: &str) -> bool {
    indentation.contains('\t') && indentation.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_shift_holds_for_all_lines() {
        let check = |pairs: &[(&str, &str)], of: &str, expected: Option<&str>| {
            let shift = IndentShift::of(pairs).and_then(|shift| shift.apply(of));
            assert_eq!(shift.as_deref(), expected, "{pairs:?}");
        };
        check(&[("", "    "), ("    ", "        ")], "  ", Some("      "));
        check(&[("    ", ""), ("      ", "  ")], "     ", Some(" "));
        check(&[("    ", ""), ("      ", "  ")], "", None);
        check(
            &[("    ", "\t"), ("        ", "\t\t")],
            "            ",
            Some("\t\t\t"),
        );
        check(&[("\t", "  "), ("", "")], "\t\t", Some("    "));
        check(&[("    ", "\t")], "      ", None);
        check(
            &[("  ", "    "), ("    ", "        ")],
            "      ",
            Some("            "),
        );
        check(&[("", "  "), ("", "    ")], "", None);
        check(&[("", "\t"), ("    ", "\t\t")], "", None);
        check(&[], "", None);
    }
}
