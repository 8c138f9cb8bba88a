//! Commands that try to reach more than they may.

use super::*;
use crate::Host;

/// Checks that a text is answered by a status and reaches no server.
async fn check(request: &str, status: &str) {
    let server = TextServer::start("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let scene = Scene::new(Parts::default());
    let request = request.replace("PORT", &server.port.to_string());
    let answer = scene.send(&request).await;
    assert!(answer.starts_with(status), "{request}: {answer}");
    assert!(server.heads().is_empty(), "{request}");
    let traffic = scene.traffic();
    assert!(traffic.iter().all(|it| it.connections == 0));
    let is_noted = traffic.iter().any(|it| it.refused.is_some());
    assert_eq!(is_noted, status.contains("403"), "{request}");
}

#[tokio::test]
async fn what_is_no_request_for_a_proxy_is_refused() {
    let bad = "HTTP/1.1 400 ";
    check("GET / HTTP/1.1\r\nHost: good.example:PORT\r\n\r\n", bad).await;
    check(
        "GET https://good.example:PORT/ HTTP/1.1\r\nHost: good.example:PORT\r\n\r\n",
        bad,
    )
    .await;
    check(
        "GET ftp://good.example:PORT/ HTTP/1.1\r\nHost: good.example:PORT\r\n\r\n",
        bad,
    )
    .await;
    check(
        "GET http://good.example:443/ HTTP/1.1\r\nHost: good.example:443\r\n\r\n",
        "HTTP/1.1 403 ",
    )
    .await;
    check(
        "GET http://u@good.example:PORT/ HTTP/1.1\r\nHost: good.example:PORT\r\n\r\n",
        bad,
    )
    .await;
    check("CONNECT good.example HTTP/1.1\r\n\r\n", bad).await;
    check("CONNECT good.example:0 HTTP/1.1\r\n\r\n", bad).await;
    check("CONNECT / HTTP/1.1\r\n\r\n", bad).await;
    // HTTP/2, SOCKS and noise.
    check("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "").await;
    check("\u{5}\u{1}\u{0}\r\n\r\n", bad).await;
}

#[tokio::test]
async fn the_header_host_names_the_host_of_the_url() {
    let bad = "HTTP/1.1 403 ";
    let url = "GET http://good.example:PORT/ HTTP/1.1\r\n";
    check(&format!("{url}Host: bad.example:PORT\r\n\r\n"), bad).await;
    check(&format!("{url}Host: good.example\r\n\r\n"), bad).await;
    check(
        &format!("{url}Host: good.example:PORT\r\nHost: bad.example\r\n\r\n"),
        bad,
    )
    .await;
    check(&format!("{url}Host:\r\n\r\n"), bad).await;
}

#[tokio::test]
async fn other_forms_of_an_address_are_no_way_to_it() {
    for host in [
        "127.0.0.1",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "0.0.0.0",
        "127.0.0.2",
    ] {
        check(
            &format!("CONNECT {host}:PORT HTTP/1.1\r\n\r\n"),
            "HTTP/1.1 403 ",
        )
        .await;
    }
    for host in ["2130706433", "127.1", "0x7f.0.0.1", "0177.0.0.1"] {
        let text = format!("CONNECT {host}:PORT HTTP/1.1\r\n\r\n");
        let answer = Scene::new(Parts::default())
            .send(&text.replace("PORT", "80"))
            .await;
        // One with leading zeros is no address for Rust, and no name either.
        assert!(answer.starts_with("HTTP/1.1 400 "), "{host}: {answer}");
    }
}

#[tokio::test]
async fn a_request_hidden_in_the_body_of_another_one_is_not_sent_by_itself() {
    let server = TextServer::start("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    // A connection that is kept ends after this time.
    let limits = ProxyLimits {
        head: Duration::from_secs(2),
        ..ProxyLimits::default()
    };
    let scene = Scene::new(Parts {
        limits,
        ..Parts::default()
    });
    let host = format!("good.example:{}", server.port);
    let hidden = "GET / HTTP/1.1\r\nHost: bad.example\r\n\r\n";
    for lengths in [
        format!("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!(
            "Content-Length: 0\r\nContent-Length: {}\r\n\r\n{hidden}",
            hidden.len()
        ),
        format!("Transfer-Encoding: chunked, identity\r\n\r\n{hidden}"),
        format!("Transfer-Encoding: xchunked\r\n\r\n{hidden}"),
        format!(
            "Connection: content-length\r\nContent-Length: {}\r\n\r\n{hidden}",
            hidden.len()
        ),
    ] {
        scene
            .send(&format!(
                "POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\n{lengths}"
            ))
            .await;
    }
    for head in server.heads() {
        assert!(head.starts_with("POST / HTTP/1.1\r\n"), "{head}");
        assert!(
            head.to_lowercase().contains("connection: close\r\n"),
            "{head}"
        );
        let lengths = ["content-length", "transfer-encoding"]
            .map(|it| head.to_lowercase().matches(it).count());
        assert_eq!(lengths.iter().sum::<usize>(), 1, "{head}");
    }
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_or_a_private_network_is_refused() {
    let server = TextServer::start("").await;
    for address in [
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "10.0.0.1",
        "169.254.169.254",
        "fe80::1",
    ] {
        let scene = Scene::new(Parts {
            names: vec![("good.example", vec![vec![ip(address)]])],
            addresses: Vec::new(),
            ..Parts::default()
        });
        let answer = scene
            .tunnel(&format!("good.example:{}", server.port))
            .await
            .unwrap_err();
        assert!(
            answer.starts_with("HTTP/1.1 403 ") && answer.contains("not to the internet"),
            "{answer}"
        );
        assert!(scene.traffic()[0].refused.is_some());
    }
    assert!(server.heads().is_empty());
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_checked_each_time() {
    let (port, _server) = echo().await;
    let scene = Scene::new(Parts {
        names: vec![(
            "good.example",
            vec![vec![ip("127.0.0.1")], vec![ip("127.0.0.2")]],
        )],
        ..Parts::default()
    });
    let target = format!("good.example:{port}");
    assert!(scene.tunnel(&target).await.is_ok());
    let answer = scene.tunnel(&target).await.unwrap_err();
    assert!(
        answer.contains("its address 127.0.0.2 belongs to this machine"),
        "{answer}"
    );
}

#[tokio::test]
async fn of_several_addresses_only_the_allowed_ones_are_tried() {
    let listener = TcpListener::bind(("127.0.0.2", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let scene = Scene::new(Parts {
        names: vec![("good.example", vec![vec![ip("127.0.0.2"), ip("127.0.0.1")]])],
        ..Parts::default()
    });
    let answer = scene
        .tunnel(&format!("good.example:{port}"))
        .await
        .unwrap_err();
    assert!(
        answer.starts_with("HTTP/1.1 502 "),
        "nobody listens at 127.0.0.1: {answer}"
    );
}

#[tokio::test]
async fn an_address_that_a_rule_denies_is_reached_by_no_name_and_in_no_form() {
    let (port, _server) = super::echo().await;
    let all = ["1.1.1.1", "::ffff:1.1.1.1", "64:ff9b::101:101"];
    let denied = |names: &[&str]| {
        Scene::new(Parts {
            names: vec![(
                "good.example",
                vec![names.iter().map(|it| ip(it)).collect()],
            )],
            denied_addresses: vec!["1.1.1.1".to_owned()],
            ..Parts::default()
        })
    };
    let scene = denied(&all);
    let answer = scene.tunnel("good.example:7").await.unwrap_err();
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(answer.contains("and the rule `x` denies it"), "{answer}");
    assert!(scene.traffic()[0].refused.is_some());
    for address in ["1.1.1.1", "[::ffff:1.1.1.1]", "[64:ff9b::101:101]"] {
        let host = address.parse::<Host>().unwrap().to_string();
        scene.decider.targets.lock().push(host);
        let answer = scene.tunnel(&format!("{address}:7")).await.unwrap_err();
        assert!(answer.starts_with("HTTP/1.1 403 "), "{address}: {answer}");
    }
    // Another address of the name is not denied.
    let scene = denied(&["1.1.1.1", "127.0.0.1"]);
    assert!(scene.tunnel(&format!("good.example:{port}")).await.is_ok());
}

#[tokio::test]
async fn an_endless_head_is_cut() {
    let scene = Scene::new(Parts::default());
    let mut client = scene.client().await;
    client
        .write_all(b"GET http://good.example/ HTTP/1.1\r\nX: ")
        .await
        .unwrap();
    let mut sent = 0;
    while client.write_all(&[b'a'; 4096]).await.is_ok() {
        sent += 4096;
        assert!(sent < 64 << 20, "it is read for ever");
    }
    let scene = Scene::new(Parts::default());
    let many: String = (0..1_000)
        .map(|number| format!("X-{number}: 1\r\n"))
        .collect();
    let answer = scene
        .send(&format!("GET http://good.example/ HTTP/1.1\r\n{many}\r\n"))
        .await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn a_head_that_does_not_end_has_its_time() {
    let limits = ProxyLimits {
        head: Duration::from_millis(50),
        ..ProxyLimits::default()
    };
    let scene = Scene::new(Parts {
        limits,
        ..Parts::default()
    });
    let mut client = scene.client().await;
    client
        .write_all(b"GET http://good.example/ HTTP/1.1\r\n")
        .await
        .unwrap();
    rest(&mut client).await;
    // TLS that does not come.
    let mut silent = scene.client().await;
    rest(&mut silent).await;
}

#[tokio::test]
async fn ten_thousand_connections_are_served_a_few_at_a_time() {
    let ((port, _server), scene) = (
        echo().await,
        Scene::new(Parts {
            limits: ProxyLimits {
                connections: 4,
                ..ProxyLimits::default()
            },
            ..Parts::default()
        }),
    );
    let target = format!("good.example:{port}");
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(scene.tunnel(&target).await.unwrap());
    }
    // Those that say nothing fill the kernel's queue only.
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(scene.client().await);
    }
    let mut waiting = scene.client().await;
    let request = format!("CONNECT {target} HTTP/1.1\r\n\r\n");
    waiting.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(scene.asked().len(), 4);
    drop((open, silent));
    let answer = head(&mut waiting).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // One after the other, there may be any number.
    drop(waiting);
    for _ in 0..10_000 {
        drop(scene.client().await);
    }
    assert!(scene.tunnel(&target).await.is_ok());
}

#[tokio::test]
async fn only_so_many_targets_are_counted() {
    let limits = ProxyLimits {
        targets: 3,
        ..ProxyLimits::default()
    };
    let scene = Scene::new(Parts {
        limits,
        ..Parts::default()
    });
    for number in 1..=20 {
        assert!(
            scene
                .tunnel(&format!("bad.example:{number}"))
                .await
                .is_err()
        );
    }
    assert_eq!(scene.traffic().len(), 3);
    // What is reached later is counted, and only so many may be.
    let mut servers = Vec::new();
    for _ in 0..3 {
        let (port, server) = echo().await;
        servers.push(server);
        assert!(scene.tunnel(&format!("good.example:{port}")).await.is_ok());
    }
    assert!(scene.traffic().iter().all(|it| it.connections > 0));
    let (port, _server) = echo().await;
    let answer = scene.tunnel(&format!("good.example:{port}")).await;
    let answer = answer.unwrap_err();
    assert!(answer.contains("reached too many other hosts"), "{answer}");
}

#[tokio::test]
async fn a_connect_to_the_port_of_plain_http_carries_requests_for_that_host_alone() {
    // The person's proxy stands for port 80, which tests cannot listen at.
    let server = TextServer::start("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await;
    let outer = format!("http://127.0.0.1:{}", server.port);
    let variables = [("HTTP_PROXY".into(), outer.into())];
    let scene = Scene::new(Parts {
        outer: OuterProxy::from_environment(&variables),
        ..Parts::default()
    });
    let get =
        |host: &str| format!("GET /a?b HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    for (request, status) in [
        (get("good.example"), "HTTP/1.1 200 "),
        (get("bad.example"), "HTTP/1.1 403 "),
        (get("good.example:81"), "HTTP/1.1 403 "),
        (
            "CONNECT good.example:7 HTTP/1.1\r\n\r\n".to_owned(),
            "HTTP/1.1 400 ",
        ),
        (
            "GET http://bad.example/ HTTP/1.1\r\n\r\n".to_owned(),
            "HTTP/1.1 400 ",
        ),
        ("SSH-2.0-x\r\n\r\n".to_owned(), "HTTP/1.1 400 "),
    ] {
        let mut tunnel = scene.tunnel("good.example:80").await.unwrap();
        tunnel.write_all(request.as_bytes()).await.unwrap();
        let answer = rest(&mut tunnel).await;
        assert!(answer.starts_with(status), "{request}: {answer}");
    }
    assert!(scene.tunnel("bad.example:80").await.is_err());
    let heads = server.heads();
    assert_eq!(heads.len(), 1, "{heads:?}");
    assert!(
        heads[0].starts_with("GET http://good.example/a?b HTTP/1.1\r\n"),
        "{heads:?}"
    );
}

#[tokio::test]
async fn a_server_that_does_not_answer_has_its_time() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let limits = ProxyLimits {
        answer: Duration::from_millis(20),
        ..ProxyLimits::default()
    };
    let scene = Scene::new(Parts {
        limits,
        ..Parts::default()
    });
    let host = format!("good.example:{port}");
    let answer = scene
        .send(&format!(
            "GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"
        ))
        .await;
    assert!(
        answer.starts_with("HTTP/1.1 502 ") && answer.contains("did not answer in time"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_reader_that_does_not_read_takes_little_memory() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let scene = Scene::new(Parts::default());
    let mut tunnel = scene.tunnel(&format!("good.example:{port}")).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    // The server writes until the buffers of the kernel and the proxy are full.
    let chunk = vec![b'a'; 64 << 10];
    let mut sent = 0_u64;
    while let Ok(Ok(())) =
        tokio::time::timeout(Duration::from_millis(200), server.write_all(&chunk)).await
    {
        sent += chunk.len() as u64;
        assert!(sent < 256 << 20, "it takes all");
    }
    drop(server);
    let mut received = 0;
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = tunnel.read(&mut buffer).await {
        received += read as u64;
    }
    assert!(received >= sent, "{received} of {sent}");
}

#[tokio::test]
async fn an_end_that_is_half_closed_still_gets_the_rest() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let scene = Scene::new(Parts::default());
    let mut tunnel = scene.tunnel(&format!("good.example:{port}")).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    tunnel.write_all(b"request").await.unwrap();
    tunnel.shutdown().await.unwrap();
    assert_eq!(rest(&mut server).await, "request");
    server.write_all(b"response").await.unwrap();
    drop(server);
    assert_eq!(rest(&mut tunnel).await, "response");
    // The same with plain HTTP.
    let server = TextServer::start("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await;
    let mut client = scene.client().await;
    let host = format!("good.example:{}", server.port);
    let request = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    assert!(rest(&mut client).await.ends_with("hi"));
}

#[tokio::test]
async fn what_is_allowed_to_one_command_is_not_allowed_to_another() {
    let ((port, _server), one) = (echo().await, Scene::new(Parts::default()));
    let other = Scene::new(Parts::default());
    other.decider.targets.lock().clear();
    let target = format!("good.example:{port}");
    let (first, second) = tokio::join!(one.tunnel(&target), other.tunnel(&target));
    assert!(first.is_ok() && second.is_err());
}
