//! Port 443: the first message of TLS must name the host of the CONNECT.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};

use crate::hello::{ALERT, Hello};
use crate::target::Host;

/// Trusts every server. The tests never reach a server.
#[derive(Debug)]
struct TrustAll;

impl ServerCertVerifier for TrustAll {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

/// Returns the first message of a real client for this name.
pub(super) fn client_hello(name: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(TrustAll))
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    connection.write_tls(&mut bytes).unwrap();
    bytes
}

async fn read(mut bytes: &[u8]) -> Option<Hello> {
    Hello::read(&mut bytes).await.unwrap()
}

async fn is_for(bytes: &[u8], host: &str) -> bool {
    let host: Host = host.parse().unwrap();
    read(bytes).await.is_some_and(|hello| hello.is_for(&host))
}

#[tokio::test]
async fn a_message_is_for_the_host_that_it_names() {
    let hello = client_hello("good.example");
    assert!(is_for(&hello, "good.example").await);
    assert!(is_for(&client_hello("GOOD.example"), "good.example").await);
    assert!(!is_for(&hello, "bad.example").await);
    assert!(!is_for(&hello, "sub.good.example").await);
    assert!(!is_for(&hello, "127.0.0.1").await, "it names another host");
    // Without a name, only an address can be meant.
    assert!(is_for(&client_hello("127.0.0.1"), "127.0.0.1").await);
    assert!(!is_for(&client_hello("127.0.0.1"), "good.example").await);
    assert_eq!(read(&hello).await.unwrap().bytes, hello);
}

#[tokio::test]
async fn a_message_in_parts_is_read_whole() {
    let hello = client_hello("good.example");
    // Each record has one byte of the message.
    let parts = hello[5..].iter().flat_map(|byte| [22, 3, 1, 0, 1, *byte]);
    let parts: Vec<u8> = parts.collect();
    assert!(is_for(&parts, "good.example").await);
    assert!(!is_for(&parts, "bad.example").await);
    let (mut client, mut server) = tokio::io::duplex(7);
    let sent = hello.clone();
    tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut client, &sent).await });
    let read = Hello::read(&mut server).await.unwrap().unwrap();
    assert_eq!(read.name.as_deref(), Some("good.example"));
}

#[tokio::test]
async fn other_messages_are_no_tls() {
    let hello = client_hello("good.example");
    for bytes in [
        b"GET / HTTP/1.1\r\nHost: bad.example\r\n\r\n".as_slice(),
        b"SSH-2.0-x\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"",
        &hello[..hello.len() - 1],
        &[0; 100_000],
        // The first message of SSL 2.
        &[0x80, 0x2e, 1, 3, 1, 0, 0x15, 0, 0, 0, 0x10],
        // A handshake message that is endless.
        &[
            [22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff].as_slice(),
            &[0; 70_000],
        ]
        .concat(),
        ALERT,
    ] {
        assert!(
            read(bytes).await.is_none(),
            "{:?}",
            &bytes[..bytes.len().min(20)]
        );
    }
}

#[tokio::test]
async fn two_names_in_one_message_are_no_tls() {
    let mut hello = client_hello("good.example");
    // The extension has a list of names: give the list a second one, by cutting the first in two.
    let at = hello
        .windows(12)
        .position(|it| it == b"good.example")
        .unwrap();
    hello[at - 2..at].copy_from_slice(&[0, 4]);
    hello[at + 4..at + 7].copy_from_slice(&[0, 0, 5]);
    hello[at + 7..at + 12].copy_from_slice(b"b.com");
    assert!(!is_for(&hello, "b.com").await);
    assert!(!is_for(&hello, "good").await);
}

/// Adds an encrypted client hello to a message. Its real name is in there, which nobody but the server can read.
fn with_encrypted_hello(hello: &[u8]) -> Vec<u8> {
    // Of the outer kind, for HKDF-SHA256 and AES-128-GCM, with the number of a key, the key and the ciphertext.
    let head = [0, 0, 1, 0, 1, 7, 0, 32];
    let body = [&head[..], &[1; 32], &[0, 144], &[2; 144]].concat();
    let length = u16::try_from(body.len()).unwrap();
    let extension = [&[0xfe, 0x0d], &length.to_be_bytes()[..], &body].concat();
    // A record, a message, the version, a random value, a session, the ciphers and the compressions.
    let mut at = 5 + 4 + 2 + 32;
    at += 1 + usize::from(hello[at]);
    at += 2 + usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
    at += 1 + usize::from(hello[at]);
    let known = u16::from_be_bytes([hello[at], hello[at + 1]]);
    let all = known + u16::try_from(extension.len()).unwrap();
    let made = [
        &hello[9..at],
        &all.to_be_bytes(),
        &hello[at + 2..],
        &extension,
    ]
    .concat();
    let made = [
        &[1],
        &u32::try_from(made.len()).unwrap().to_be_bytes()[1..],
        &made,
    ]
    .concat();
    let length = u16::try_from(made.len()).unwrap();
    [&hello[..3], &length.to_be_bytes(), &made].concat()
}

#[tokio::test]
async fn of_an_encrypted_hello_the_outer_name_counts() {
    let hello = with_encrypted_hello(&client_hello("good.example"));
    let found = read(&hello).await.unwrap();
    assert_eq!(found.name.as_deref(), Some("good.example"));
    assert!(is_for(&hello, "good.example").await);
    assert!(!is_for(&hello, "bad.example").await);
    let nameless = with_encrypted_hello(&client_hello("127.0.0.1"));
    assert!(!is_for(&nameless, "good.example").await);
}
