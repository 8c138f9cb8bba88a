//! The settings that decide which commands run without a question.

use crate::config::setting::{Setting, setting};
use crate::config::value::Kind;

/// The settings about approval, in the order of the help.
pub(super) static SETTINGS: &[Setting] = &[
    setting(
        "allow",
        "",
        Kind::Words(|c, v| c.policy.allow = v),
        "Commands that run without a question, as an approved one would: cargo test covers \
         cargo test --lib. If a command names a program or code, the rule must have that word, too: \
         uv run pytest covers uv run pytest -x, but uv run covers nothing.",
    ),
    setting(
        "ask",
        "",
        Kind::Rules(|c, v| c.policy.ask = v),
        "Commands that are always asked about. Rules match as those of deny.",
    )
    .strict(),
    setting(
        "deny",
        "",
        Kind::Rules(|c, v| c.policy.deny = v),
        "Commands that are refused without a question; nothing overrules it. git push also matches \
         git -C . push and uv run git push; git reset --hard matches git reset -q --hard.",
    )
    .strict(),
    setting(
        "shell_lift_deny",
        "",
        Kind::Words(|c, v| c.policy.deny_lifted = v),
        "Names of built-in deny rules that shall not refuse: root-deletion, raw-disk, fork-bomb, own-files.",
    ),
    setting(
        "shell_safe_commands",
        "(the built-in list)",
        Kind::Words(|c, v| c.policy.safe_commands = Some(v)),
        "The only programs that may run without a question, such as ls or git log. It narrows the \
         built-in list of programs that only look; with an empty list, every command asks. Entries that never only look, such as \
         make, have no effect, and co names them.",
    )
    .strict(),
];
