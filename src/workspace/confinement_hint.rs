//! Finds out from the outcome of a command whether its confinement may have caused a failure.

use crate::config::Network;
use co_exec::{CONTAINER_WORDS, CommandOutcome, WORKSPACE_WORDS};

/// Error messages that programs print when the kernel refuses an operation, in lower case.
const REFUSED: &[&str] = &[
    "read-only file system",
    "permission denied",
    "operation not permitted",
    "eperm",
    "device or resource busy",
];

/// More error messages that programs print when the read-only level refuses an operation, in lower case.
const REFUSED_TO_READERS: &[&str] = &[
    "eacces",
    "erofs",
    "function not implemented",
    "enosys",
    "bad system call",
    "too many open files",
    "resource temporarily unavailable",
    "no space left on device",
];

/// Error messages that programs print without network access, in lower case.
const NO_NETWORK: &[&str] = &[
    "could not resolve",
    "name resolution",
    "name or service not known",
    "eai_again",
    "couldn't connect",
    "could not connect",
    "network is unreachable",
    "connection refused",
    "econnrefused",
    "enotfound",
    "no such host",
];

/// Returns a sentence about the confinement of a failed command, if its output contains a message about a refused operation.
pub fn hint(outcome: &CommandOutcome, network: Network) -> Option<String> {
    let place = match outcome.level {
        "workspace" => WORKSPACE_WORDS,
        "container" => CONTAINER_WORDS,
        _ => return None,
    };
    if !outcome.failed() {
        return None;
    }
    let (network, no_network) = match network {
        Network::None => (", no network", NO_NETWORK),
        Network::Ask => (", no network but allowed hosts", NO_NETWORK),
        Network::Some => ("", &[][..]),
    };
    let output = outcome.output.to_lowercase();
    let mut messages = REFUSED.iter().chain(no_network);
    messages
        .any(|message| output.contains(message))
        .then(|| format!("{place}: no writes outside{network}; `:Co /sandbox subprocess` lifts it"))
}

/// Returns true if a text contains a message about a refused operation.
pub fn is_refused(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut messages = REFUSED.iter().chain(REFUSED_TO_READERS);
    messages.any(|message| text.contains(message))
}

/// Returns true if a text contains a message about missing network access.
pub fn lacks_network(text: &str) -> bool {
    let text = text.to_lowercase();
    NO_NETWORK.iter().any(|message| text.contains(message))
}

/// Returns the status of a run for the shell buffer: its outcome, and its confinement if it has one.
pub fn status(outcome: &CommandOutcome, confinement: Option<&str>, network: Network) -> String {
    let line = outcome.status();
    match hint(outcome, network).as_deref().or(confinement) {
        Some(words) => format!("{line}; {words}"),
        None => line,
    }
}

/// Returns true if the read-only level may have caused the failure of a command: the command exceeded a limit, or its output
/// contains a message about a refused operation.
///
/// Ignores the exit status, because many programs use it to report a difference or an empty result.
pub fn may_have_failed(outcome: &CommandOutcome) -> bool {
    let output = outcome.output.to_lowercase();
    let mut messages = REFUSED.iter().chain(REFUSED_TO_READERS).chain(NO_NETWORK);
    outcome.limit.is_some() || outcome.failed() && messages.any(|message| output.contains(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_follows_output_that_speaks_of_the_confinement() {
        let hinted = |output: &str, network| {
            let outcome = CommandOutcome {
                exit: Some(1),
                level: "workspace",
                output: output.to_owned(),
                ..CommandOutcome::default()
            };
            hint(&outcome, network).is_some()
        };
        for output in [
            "touch: cannot touch '/x': Read-only file system",
            "rm: cannot remove '.git/config': Device or resource busy",
            "cat: .env: Permission denied",
            "Error: EROFS: read-only file system, open '/etc/x'",
            "PermissionError: [Errno 1] Operation not permitted",
            "Error: connect EPERM 1.1.1.1:80",
        ] {
            assert!(hinted(output, Network::None), "{output}");
            assert!(hinted(output, Network::Some), "{output}");
        }
        for output in [
            "curl: (6) Could not resolve host: example.com",
            "curl: (7) Failed to connect to 1.1.1.1 port 80: Couldn't connect to server",
            "connect: Network is unreachable",
            "ssh: Could not resolve hostname x: Temporary failure in name resolution",
            "[Errno -2] Name or service not known",
            "Error: getaddrinfo EAI_AGAIN example.com",
        ] {
            assert!(hinted(output, Network::None), "{output}");
            assert!(hinted(output, Network::Ask), "{output}");
            assert!(!hinted(output, Network::Some), "{output}");
        }
        for output in ["", "1c1\n< a\n---\n> b\n[exit 1]\n", "error: no test"] {
            assert!(!hinted(output, Network::None), "{output}");
        }
    }

    #[test]
    fn an_exit_status_alone_does_not_blame_the_read_only_level() {
        let ended = |exit, output: &str| CommandOutcome {
            exit: Some(exit),
            output: output.to_owned(),
            ..CommandOutcome::default()
        };
        for output in [
            "cat: a: Permission denied",
            "OSError: [Errno 38] Function not implemented",
            "awk: cannot open pipe \"x\" (Too many open files)",
        ] {
            assert!(may_have_failed(&ended(2, output)), "{output}");
            assert!(!may_have_failed(&ended(0, output)), "{output}");
        }
        for output in [
            "",
            "1c1\n< a\n---\n> b\n[exit 1]\n",
            "cat: a: No such file or directory",
        ] {
            assert!(!may_have_failed(&ended(1, output)), "{output}");
        }
        let killed = CommandOutcome {
            limit: Some(co_exec::ExceededLimit::Processes(64)),
            ..CommandOutcome::default()
        };
        assert!(may_have_failed(&killed));
    }
}
