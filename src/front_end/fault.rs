//! Error texts for the faults of a provider, with the commands of Neovim that help.

use crate::error::ErrorText;
use co_llm::Fault;
use co_llm::provider_table::{FALLBACK, NAMES, alternatives, main_key_variables};
use co_text::{first_line, shorten_chars};

/// The largest number of characters that are shown of a server's error message.
const LONGEST: usize = 300;

impl From<&Fault> for ErrorText {
    fn from(fault: &Fault) -> Self {
        Self {
            message: fault.to_string(),
            details: words(fault),
            hint: Some(step(fault)),
        }
    }
}

/// The hint after a request was refused in every form.
const WAYS_OUT: &str = "`:Co /rewind` goes back to before a prompt, `:Co /compact` sums the chat up, `:Co /new` starts afresh, \
     `:Co /model` asks another model; `:help co-stuck`";

/// The hint if the content of the chat may be the cause of a fault.
const IF_ONLY_THIS_CHAT: &str =
    "if only this chat fails, `:Co /rewind` goes back to before a prompt; `:help co-stuck`";

/// Returns the hint that says what the person can do next.
fn step(fault: &Fault) -> String {
    let step = match fault {
        Fault::NoProvider => format!(
            "set {}, start {}, or set base_url to the address of another server",
            alternatives(&main_key_variables()),
            FALLBACK.title
        ),
        Fault::AgentWorks { .. } => "`:Co /new` starts a chat with a model".into(),
        Fault::WrongSetting { .. } => {
            "`:checkhealth co` says how to correct it; then `:Co /new`, or restart Neovim".into()
        }
        Fault::UnknownProvider { .. } => format!("use {}", alternatives(&NAMES)),
        Fault::KeyUnusable { cause, .. } => cause.clone(),
        Fault::NoKey {
            variable: Some(variable),
            ..
        } => format!("set {variable} and restart Neovim"),
        Fault::NoKey { variable: None, .. } => {
            "set api_key_env to the name of the environment variable with the key".into()
        }
        Fault::NoAddress { .. } => "set base_url to the address of your resource".into(),
        Fault::Unreachable { .. } => "start the server, mend the network or set base_url".into(),
        Fault::Tls { .. } => {
            "set base_url to the address that the certificate names, or have this system trust its issuer".into()
        }
        Fault::NoCaCertificates { .. } => {
            "install the package ca-certificates, or set SSL_CERT_FILE to a file of certificates, and restart Neovim".into()
        }
        Fault::Unauthorized { source_name, .. } => format!("check the key in {source_name}"),
        Fault::Forbidden { provider, .. } => {
            format!("see your account at {provider}, or choose another model with `:Co /model`")
        }
        Fault::NotFound { near, .. } if near.is_empty() => "choose another with `:Co /model`".into(),
        Fault::NotFound { near, .. } => {
            format!("choose another with `:Co /model`, such as {}", near.join(", "))
        }
        Fault::QuotaUsedUp { provider, .. } => format!(
            "add credit or raise the limit in your account at {provider}, or choose another model with `:Co /model`"
        ),
        Fault::RateLimited { .. } | Fault::Server { .. } => "try `:Co /retry` later".into(),
        Fault::Overflow { .. } | Fault::TooLarge { .. } | Fault::BadRequest { .. } => WAYS_OUT.into(),
        Fault::HtmlPage { url } => format!(
            "something between here and {url} answers for it, such as a proxy or a login page: log in there, or set base_url"
        ),
        Fault::Malformed { .. } | Fault::Cut | Fault::AnswerTooLong | Fault::Stalled(_) => {
            "the answer so far is kept; `:Co /continue` continues it, `:Co /retry` asks again".into()
        }
    };
    match fault.may_be_refusal() && !fault.is_refusal() {
        true => format!("{step}; {IF_ONLY_THIS_CHAT}"),
        false => step,
    }
}

/// Returns the first line of the server's error message, cut if it is too long.
fn words(fault: &Fault) -> Option<String> {
    let body = match fault {
        Fault::Unauthorized { body, .. }
        | Fault::Forbidden { body, .. }
        | Fault::NotFound { body, .. }
        | Fault::QuotaUsedUp { body, .. }
        | Fault::Server { body, .. }
        | Fault::Overflow { body }
        | Fault::TooLarge { body, .. }
        | Fault::BadRequest { body, .. } => body,
        Fault::Malformed { detail } => detail,
        _ => return None,
    };
    let line = shorten_chars(first_line(body), LONGEST);
    let line = line.trim_end_matches('.');
    (!line.is_empty()).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::text_of;

    #[test]
    fn every_fault_says_what_to_do() {
        let fault = Fault::Unauthorized {
            provider: "openai".to_owned(),
            status: 401,
            source_name: "OPENAI_API_KEY".to_owned(),
            body: "Incorrect API key provided.".to_owned(),
        };
        assert_eq!(
            text_of(&fault).plain(),
            "openai refused the key (HTTP 401); Incorrect API key provided; check the key in OPENAI_API_KEY"
        );
        assert_eq!(
            text_of(&Fault::NoProvider).plain(),
            "no provider is set up; set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, \
             start Ollama, or set base_url to the address of another server"
        );
        let no_key = |variable: Option<&str>| {
            text_of(&Fault::NoKey {
                provider: "h:8080".to_owned(),
                variable: variable.map(str::to_owned),
            })
            .plain()
        };
        assert_eq!(
            no_key(Some("WORK_KEY")),
            "the key for h:8080 is missing; set WORK_KEY and restart Neovim"
        );
        assert_eq!(
            no_key(None),
            "the key for h:8080 is missing; set api_key_env to the name of the environment variable with the key"
        );
        assert!(text_of(&Fault::Cut).markdown().contains("/retry"));
        let fault = Fault::Unreachable {
            url: "https://h/v1/".to_owned(),
            cause: "invalid peer certificate: UnknownIssuer".to_owned(),
        };
        assert_eq!(
            text_of(&fault).plain(),
            "nothing answers at https://h/v1/ (invalid peer certificate: UnknownIssuer); \
             start the server, mend the network or set base_url"
        );
        let fault = Fault::BadRequest {
            provider: "Ollama".to_owned(),
            body: "gemma does not support tools\n".to_owned(),
        };
        assert_eq!(
            text_of(&fault).plain(),
            "Ollama refused the request (HTTP 400); gemma does not support tools; \
             `:Co /rewind` goes back to before a prompt, `:Co /compact` sums the chat up, `:Co /new` starts afresh, \
             `:Co /model` asks another model; `:help co-stuck`"
        );
        let fault = Fault::Overflow {
            body: "Try to load the model with a larger context length.".to_owned(),
        };
        let told = text_of(&fault).plain();
        assert!(
            told.starts_with(
                "the chat is longer than the model's context window; Try to load the model with a larger context length; `:Co /rewind`"
            ),
            "{told}"
        );
        let provider = || "Ollama".to_owned();
        let server = |body: &str| Fault::Server {
            provider: provider(),
            status: 529,
            retry_after: None,
            body: body.to_owned(),
            explained: false,
        };
        let forbidden = Fault::Forbidden {
            provider: provider(),
            status: 403,
            body: "No access.".to_owned(),
        };
        let not_found = Fault::NotFound {
            provider: provider(),
            model: "m".to_owned(),
            body: String::new(),
            near: vec!["m1".to_owned()],
        };
        for (fault, expected) in [
            (
                server("Busy"),
                "failed (HTTP 529); Busy; try `:Co /retry` later",
            ),
            (server(""), "failed (HTTP 529); try `:Co /retry` later"),
            (
                forbidden,
                "does not allow this (HTTP 403); No access; see your account at Ollama, \
                 or choose another model with `:Co /model`; if only this chat fails, `:Co /rewind` goes back to before a prompt; \
                 `:help co-stuck`",
            ),
            (
                not_found,
                "does not know the model m (HTTP 404); choose another with `:Co /model`, such as m1; \
                 if only this chat fails, `:Co /rewind` goes back to before a prompt; `:help co-stuck`",
            ),
        ] {
            assert_eq!(text_of(&fault).plain(), format!("Ollama {expected}"));
        }
        let fault = Fault::Malformed {
            detail: "it is text/plain, not JSON\nat all".to_owned(),
        };
        assert_eq!(
            text_of(&fault).markdown(),
            "**the answer could not be read**: it is text/plain, not JSON; \
             the answer so far is kept; `:Co /continue` continues it, `:Co /retry` asks again"
        );
    }
}
