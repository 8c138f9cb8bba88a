//! A secret that a program prints, such as the program of a password store.

use std::process::Stdio;
use std::time::Duration;

/// The time-out of the program. It is long because the program may ask for a passphrase.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The hint for a program that prints no secret.
const TRY_IT: &str = "run it in a terminal to see why";

/// Runs a program with all rights of the person, and returns the first line of its output. Ignores further lines, because a
/// password store may print notes after the secret.
///
/// # Errors
/// The program of this setting failed, took too long or printed nothing. The error has the cause, and nothing of the program's
/// output.
pub async fn printed_secret(argv: &[String], setting: &str) -> Result<String, String> {
    let [program, arguments @ ..] = argv else {
        return Err(format!("{setting} is empty"));
    };
    let output = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(TIMEOUT, output)
        .await
        .map_err(|_| format!("it took more than {} s: {TRY_IT}", TIMEOUT.as_secs()))?
        .map_err(|error| format!("{error}: set {setting} to a program that runs"))?;
    if !output.status.success() {
        return Err(format!("it ended with {}: {TRY_IT}", output.status));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    match printed.lines().next().map(str::trim) {
        None | Some("") => Err(format!("it printed nothing: {TRY_IT}")),
        Some(secret) => Ok(secret.to_owned()),
    }
}
