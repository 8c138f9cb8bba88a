//! Encrypted connections to a server whose certificate the system trusts, and to one whose certificate it does not.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use co_llm::retry::Backoff;
use co_llm::{Fault, STALL_TIMEOUT, ServerMemory};

use super::wire::{WIRES, go, key};

/// OpenSSL's own server.
struct TlsServer {
    child: Child,
    url: String,
}

fn openssl(directory: &Path, args: &str) -> Command {
    let mut command = Command::new("openssl");
    command.args(args.split(' ')).current_dir(directory);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// Makes `{name}.key` and `{name}.pem` in a directory: a new key and a certificate for it, which it signs itself unless the
/// options say otherwise.
fn make_certificate(directory: &Path, name: &str, options: &str) {
    let make = format!(
        "req -x509 -nodes -days 1 -subj /CN={name} -keyout {name}.key -out {name}.pem {options}"
    );
    let made = openssl(directory, &make).status();
    assert!(made.expect("openssl is installed").success());
}

impl TlsServer {
    /// Starts it with the certificate `server.pem` of a directory.
    fn start(directory: &Path) -> Self {
        let start = "s_server -accept 127.0.0.1:0 -www -key server.key -cert server.pem";
        let mut child = openssl(directory, start)
            .stdout(Stdio::piped())
            .spawn()
            .expect("openssl starts");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let address = lines
            .map_while(Result::ok)
            .find_map(|line| Some(line.strip_prefix("ACCEPT ")?.to_owned()));
        let url = format!("https://{}/", address.expect("it prints its address"));
        Self { child, url }
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        // It fails if the server has ended.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Returns the report of `co-nvim doctor` on a system that trusts the authorities in `authorities`, a file in `home`.
fn doctor(home: &Path, authorities: &str, base_url: &str) -> String {
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_co-nvim"));
    doctor.arg("doctor").env("HOME", home);
    doctor.env_remove("SSL_CERT_DIR");
    doctor.env("SSL_CERT_FILE", home.join(authorities));
    doctor.env("CO_CLI_PROVIDER", "openai");
    doctor.env("CO_CLI_API_KEY_ENV", "HOME");
    doctor.env("CO_CLI_BASE_URL", base_url);
    let said = doctor.output().expect("the doctor starts").stdout;
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_said_and_not_tried_again() {
    let directory = tempfile::tempdir().expect("a directory");
    make_certificate(directory.path(), "server", "-newkey rsa:2048");
    let server = TlsServer::start(directory.path());
    for wire in WIRES {
        let settings = wire.settings(&server.url);
        let provider =
            co_llm::make_provider_with(&settings, &key, STALL_TIMEOUT, ServerMemory::default());
        let provider = provider.expect("a provider");
        let mut deltas = go(provider.as_ref()).await;
        let Some(Err(fault)) = deltas.pop() else {
            panic!("{wire:?}: {deltas:?}");
        };
        assert!(matches!(fault, Fault::Tls { .. }), "{wire:?}: {fault:?}");
        let said = fault.to_string();
        assert!(said.contains("certificate"), "{said}");
        assert_eq!(Backoff::new().next(&fault), None, "{wire:?}");
    }
}

#[test]
fn a_certificate_of_an_authority_that_the_system_trusts_is_accepted() {
    for kind in [
        "rsa:2048",
        "ec -pkeyopt ec_paramgen_curve:P-256",
        "ec -pkeyopt ec_paramgen_curve:P-384",
        "ed25519",
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path();
        let extension = "-addext basicConstraints=critical,CA";
        let authority = format!("-newkey {kind} {extension}:TRUE");
        make_certificate(directory, "authority", &authority);
        let signed = "-CA authority.pem -CAkey authority.key -addext subjectAltName=IP:127.0.0.1";
        let server = format!("-newkey {kind} {extension}:FALSE {signed}");
        make_certificate(directory, "server", &server);
        let server = TlsServer::start(directory);
        let said = doctor(directory, "authority.pem", &server.url);
        // What openssl sends is no answer of a provider.
        assert!(said.contains("web page"), "{kind}: {said}");
    }
}

#[test]
fn a_system_without_authorities_reaches_only_servers_without_encryption() {
    let home = tempfile::tempdir().expect("a directory");
    std::fs::write(home.path().join("none.pem"), "").expect("it can be written");
    let said = doctor(home.path(), "none.pem", "http://127.0.0.1:1/");
    assert!(said.contains("Connection refused"), "{said}");
    let said = doctor(home.path(), "none.pem", "https://127.0.0.1:1/");
    assert!(
        said.contains("install the package ca-certificates"),
        "{said}"
    );
}
