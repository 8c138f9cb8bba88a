//! The settings of a chat and its turns.

use crate::config::setting::{Applies, Setting, setting};
use crate::config::units::{index, small};
use crate::config::value::Kind;

/// The settings of a chat, in the order of the help.
pub(super) static SETTINGS: &[Setting] = &[
    setting(
        "max_steps",
        "50",
        Kind::Number(0..=100_000, |c, v| c.max_steps = small(v)),
        "Requests to the model in one turn before it must sum up; 0 is no limit.",
    ),
    setting(
        "max_scouts",
        "4",
        Kind::Number(0..=8, |c, v| c.max_scouts = index(v)),
        "Scouts of a turn that look at once, see |co-explore|; with 0 the model has no such tool.",
    )
    .applies(Applies::NextChat),
    setting(
        "scout_model",
        "(the chat's)",
        Kind::Text(|c, v| c.scout_model = Some(v)),
        "The model of scouts (|co-explore|), such as a cheaper one: its name as in |co-model|, or a profile of |co-providers|. Scouts \
         send it what they read.",
    ),
    setting(
        "show_reasoning",
        "true",
        Kind::Flag(|c, v| c.show_reasoning = v),
        "Show what the model thinks while it thinks, where its provider tells, and fold it then.",
    ),
    setting(
        "chat_calls",
        "short",
        Kind::Choice(&["short", "full"], |c, v| c.full_calls = v == "full"),
        "What a chat shows of each call. short is a line with what is not as usual, and the last lines of \
         its output; a fold has the rest. full opens all of it, and also says what is usual.",
    )
    .applies(Applies::NextChat),
    setting(
        "redact",
        "true",
        Kind::Flag(|c, v| c.redact = v),
        "Hide secrets from the model, in output and context. See |co-secrets|.",
    ),
    setting(
        "skills",
        "true",
        Kind::Flag(|c, v| c.skills = v),
        "Name your skills and the trusted ones of the workspace to the model, see |co-skill|.",
    ),
    setting(
        "chat_prune_days",
        "none",
        Kind::Limit(1..=100_000, |c, v| c.chat_prune_days = v.map(small)),
        "Chats untouched for this many days are removed; none keeps them all.",
    )
    .applies(Applies::Restart),
    setting(
        "auto_confirm",
        "false",
        Kind::Flag(|c, v| c.auto_confirm = v),
        "Run what the model asks for without a question. Deny rules still refuse, what is longer than 10,000 \
         characters still asks, and the winbar says that it is on.",
    ),
];
