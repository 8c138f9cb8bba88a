//! A proxy of the person behind co's, and TLS on port 443 through it: its port can be any.

use super::tls::client_hello;
use super::*;
use crate::hello::ALERT;

/// Returns the person's proxy, and its server, which sends back what comes after a CONNECT.
async fn outer(status: &str) -> (OuterProxy, TextServer) {
    let server = TextServer::start_with(format!("HTTP/1.1 {status}\r\n\r\n"), true).await;
    let url = format!("http://me:secret@127.0.0.1:{}", server.port);
    let variables = [("ALL_PROXY".into(), url.into())];
    (OuterProxy::from_environment(&variables), server)
}

fn behind(outer: OuterProxy) -> Scene {
    Scene::new(Parts {
        outer,
        names: Vec::new(),
        ..Parts::default()
    })
}

#[tokio::test]
async fn connections_go_through_the_proxy_of_the_person() {
    let (outer, server) = outer("200 OK").await;
    let scene = behind(outer);
    let mut tunnel = scene.tunnel("good.example:7").await.unwrap();
    tunnel.write_all(b"there and back").await.unwrap();
    let mut back = [0; 14];
    tunnel.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"there and back");
    let head = server.heads().remove(0);
    assert!(
        head.starts_with("CONNECT good.example:7 HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.to_lowercase()
            .contains("proxy-authorization: basic bwu6c2vjcmv0"),
        "{head}"
    );
    assert!(scene.tunnel("bad.example:7").await.is_err());
    assert_eq!(
        server.heads().len(),
        1,
        "it is not asked about what is refused"
    );
}

#[tokio::test]
async fn plain_requests_go_whole_to_the_proxy_of_the_person() {
    let (outer, server) = outer("200 OK").await;
    let scene = behind(outer);
    let request = "GET http://good.example/a HTTP/1.1\r\nHost: good.example\r\nProxy-Authorization: Basic own\r\n\r\n";
    let mut client = scene.client().await;
    client.write_all(request.as_bytes()).await.unwrap();
    assert!(head(&mut client).await.starts_with("HTTP/1.1 200 OK"));
    let head = server.heads().remove(0);
    assert!(
        head.starts_with("GET http://good.example/a HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.to_lowercase().contains("basic bwu6c2vjcmv0") && !head.contains("own"),
        "{head}"
    );
}

#[tokio::test]
async fn a_proxy_of_the_person_that_refuses_is_named() {
    let (outer, _server) = outer("407 Proxy Authentication Required").await;
    let answer = behind(outer).tunnel("good.example:7").await.unwrap_err();
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(
        answer.contains("does not connect to good.example:7: it answers 407"),
        "{answer}"
    );
    assert!(!answer.contains("secret"), "{answer}");
}

#[tokio::test]
async fn a_name_of_this_machine_is_refused_behind_a_proxy_too() {
    let (outer, server) = outer("200 OK").await;
    let scene = Scene::new(Parts {
        outer,
        names: vec![
            ("good.example", vec![vec![ip("169.254.169.254")]]),
            ("bad.example", vec![vec![ip("1.2.3.4"), ip("10.0.0.5")]]),
        ],
        ..Parts::default()
    });
    scene.decider.targets.lock().push("bad.example".to_owned());
    // The proxy of the person chooses among the addresses of a name.
    for target in ["good.example:7", "bad.example:7"] {
        let answer = scene.tunnel(target).await.unwrap_err();
        assert!(answer.contains("not to the internet"), "{answer}");
    }
    let plain = "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n";
    let answer = scene.send(plain).await;
    assert!(answer.contains("not to the internet"), "{answer}");
    assert!(server.heads().is_empty());
}

#[tokio::test]
async fn on_port_443_the_name_must_be_that_of_the_connect() {
    let (outer, _server) = outer("200 OK").await;
    let scene = behind(outer);
    let mut tunnel = scene.tunnel("good.example:443").await.unwrap();
    let hello = client_hello("good.example");
    tunnel.write_all(&hello).await.unwrap();
    let mut back = vec![0; hello.len()];
    tunnel.read_exact(&mut back).await.unwrap();
    assert_eq!(back, hello);
    drop(tunnel);
    for first in [
        client_hello("bad.example"),
        client_hello("1.2.3.4"),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
    ] {
        let before = scene.traffic()[0].sent;
        let mut tunnel = scene.tunnel("good.example:443").await.unwrap();
        tunnel.write_all(&first).await.unwrap();
        let answer = rest(&mut tunnel).await;
        assert_eq!(answer, String::from_utf8_lossy(ALERT));
        scene.wait_for(|all| all[0].refused.is_some()).await;
        let after = &scene.traffic()[0];
        assert_eq!(after.sent, before, "nothing went out");
        assert!(
            after
                .refused
                .as_deref()
                .unwrap()
                .contains("but its TLS names")
                || after.refused.as_deref().unwrap().contains("takes TLS only")
        );
    }
}
