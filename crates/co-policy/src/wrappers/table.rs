//! Wrappers: programs that start another program, and its position among their words.

use crate::bash::Word;

/// The layout of a wrapper's words. Options in none of the lists take no value in the next word.
pub(super) struct Wrapper {
    /// Names of the programs, with spaces between them.
    names: &'static str,
    /// Options with a value in the next word.
    valued: &'static str,
    /// Options whose value is shell text.
    texts: &'static str,
    /// Options whose value is the directory it runs in.
    dirs: &'static str,
    /// Number of operands before the command, such as a duration or a lock file.
    before: usize,
    /// True if `NAME=value` may stand before the command.
    assigns: bool,
    /// True if the words of the command together are shell text.
    pub(super) joins: bool,
}

const PLAIN: Wrapper = Wrapper {
    names: "",
    valued: "",
    texts: "",
    dirs: "",
    before: 0,
    assigns: false,
    joins: false,
};

const WRAPPERS: [Wrapper; 21] = [
    Wrapper {
        names: "nohup setsid builtin command busybox toybox coproc ! fakeroot unbuffer catchsegv dbus-run-session setpriv unshare linux32 linux64",
        ..PLAIN
    },
    Wrapper {
        names: "env",
        valued: "-u --unset",
        texts: "-S --split-string",
        dirs: "-C --chdir",
        assigns: true,
        ..PLAIN
    },
    Wrapper {
        names: "sudo doas pkexec run0",
        valued: "-u -g -h -p -C -R -T -r -t -U --user --group --host --prompt --close-from --chroot --command-timeout --role --type --other-user",
        dirs: "-D --chdir",
        assigns: true,
        ..PLAIN
    },
    Wrapper {
        names: "su runuser",
        valued: "-u -g -G -s -w --user --group --supp-group --shell --whitelist-environment",
        texts: "-c --command --session-command",
        ..PLAIN
    },
    Wrapper {
        names: "sg newgrp",
        texts: "-c",
        before: 1,
        ..PLAIN
    },
    Wrapper {
        names: "nice",
        valued: "-n --adjustment",
        ..PLAIN
    },
    Wrapper {
        names: "ionice",
        valued: "-n -c -p --classdata --class",
        ..PLAIN
    },
    Wrapper {
        names: "chrt taskset",
        before: 1,
        ..PLAIN
    },
    Wrapper {
        names: "timeout",
        valued: "-s -k --signal --kill-after",
        before: 1,
        ..PLAIN
    },
    Wrapper {
        names: "chroot",
        valued: "--userspec --groups",
        before: 1,
        ..PLAIN
    },
    Wrapper {
        names: "flock",
        valued: "-w -E --wait --timeout --conflict-exit-code",
        texts: "-c --command",
        before: 1,
        ..PLAIN
    },
    Wrapper {
        names: "script",
        valued: "-E -I -O -B -T -m -o --echo --log-in --log-out --log-io --log-timing --logging-format --output-limit",
        texts: "-c --command",
        before: 1,
        ..PLAIN
    },
    Wrapper {
        names: "exec",
        valued: "-a",
        ..PLAIN
    },
    Wrapper {
        names: "time",
        valued: "-f -o --format --output",
        ..PLAIN
    },
    Wrapper {
        names: "watch",
        valued: "-n -q --interval --equexit",
        joins: true,
        ..PLAIN
    },
    Wrapper {
        names: "strace ltrace",
        valued: "-a -b -e -E -I -n -o -O -P -s -S -u -U -X -l -x",
        ..PLAIN
    },
    Wrapper {
        names: "caffeinate",
        valued: "-t -w",
        ..PLAIN
    },
    Wrapper {
        names: "stdbuf",
        valued: "-i -o -e --input --output --error",
        ..PLAIN
    },
    Wrapper {
        names: "xargs",
        valued: "-n -L -I -P -d -s -E -a --max-args --max-lines --max-procs --delimiter --max-chars --arg-file",
        ..PLAIN
    },
    Wrapper {
        names: "parallel",
        valued: "-n -N -L -I -P -d -s -a -j --max-args --max-procs --delimiter --arg-file --jobs",
        joins: true,
        ..PLAIN
    },
    Wrapper {
        names: "systemd-run systemd-inhibit",
        valued: "-u -p -E -H -M --unit --property --setenv --uid --gid --slice --what --who --why --mode",
        dirs: "--working-directory",
        ..PLAIN
    },
];

/// Returns the layout of a wrapper; `None` for other programs.
pub(super) fn lookup(name: &str) -> Option<&'static Wrapper> {
    let named = |wrapper: &&Wrapper| wrapper.names.split(' ').any(|own| own == name);
    WRAPPERS.iter().find(named)
}

impl Wrapper {
    /// Returns the shell texts among the words.
    pub(super) fn texts(&self, words: &[Word]) -> Vec<String> {
        values(self.texts, words)
    }

    /// Returns the directory that an option names.
    pub(super) fn directory(&self, words: &[Word]) -> Option<String> {
        values(self.dirs, words).pop()
    }

    /// Returns the words of the started command, behind the wrapper's own options, assignments and operands.
    pub(super) fn command<'a>(&self, words: &'a [Word]) -> &'a [Word] {
        let mut at = 0;
        while let Some(word) = words.get(at).map(Word::text) {
            if word == "--" {
                at += 1;
                break;
            } else if self.takes_value(word) {
                at += 2;
            } else if word.starts_with('-') || (self.assigns && word.contains('=')) {
                at += 1;
            } else {
                break;
            }
        }
        let words = words.get(at + self.before..).unwrap_or_default();
        match words.first() {
            Some(word) if self.before > 0 && word.text() == "--" => &words[1..],
            _ => words,
        }
    }

    fn takes_value(&self, word: &str) -> bool {
        let lists = [self.valued, self.texts, self.dirs];
        let listed = |list: &&str| list.split(' ').any(|option| option == word);
        lists.iter().any(listed) || clustered(self.texts, word)
    }
}

/// Returns the values of options, from the next word or attached.
fn values(options: &str, words: &[Word]) -> Vec<String> {
    let mut found = Vec::new();
    for (place, word) in words.iter().map(Word::text).enumerate() {
        let next = || words.get(place + 1).map(|word| word.text().to_owned());
        if clustered(options, word) {
            found.extend(next());
        }
        for option in options.split(' ').filter(|option| !option.is_empty()) {
            match word.strip_prefix(option) {
                Some("") => found.extend(next()),
                Some(rest) if !option.starts_with("--") => found.push(rest.to_owned()),
                Some(rest) => found.extend(rest.strip_prefix('=').map(str::to_owned)),
                None => {}
            }
        }
    }
    found
}

/// True for a group of letters that ends in one of the options: `-qc`.
fn clustered(options: &str, word: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| letters.len() > 1);
    letters.is_some_and(|letters| {
        let short = |option: &str| option.len() == 2 && letters.ends_with(&option[1..]);
        letters.bytes().all(|b| b.is_ascii_alphabetic()) && options.split(' ').any(short)
    })
}
