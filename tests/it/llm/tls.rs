//! An encrypted connection to a server whose certificate nobody vouches for.

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

impl TlsServer {
    /// Starts it with a new certificate that it signed itself.
    fn start(directory: &Path) -> Self {
        let openssl = |args: &str| {
            let mut command = Command::new("openssl");
            command.args(args.split(' ')).current_dir(directory);
            command.stdin(Stdio::null()).stderr(Stdio::null());
            command
        };
        let make = "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -keyout key.pem -out cert.pem";
        let made = openssl(make).status().expect("openssl is installed");
        assert!(made.success());
        let mut child = openssl("s_server -accept 127.0.0.1:0 -www -key key.pem -cert cert.pem")
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

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_said_and_not_tried_again() {
    let directory = tempfile::tempdir().expect("a directory");
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
