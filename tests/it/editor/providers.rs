//! Chats with several providers: each receives its own only, and a failure has one sentence and its tokens.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::llm::wire::{Said, Wire};
use crate::support::http::{Ending, Reply, Response, Scripted, Server};

use super::scene::Scene;

/// Starts a server that lists one model. `reply` gets the number of answers before it.
fn serve(reply: impl Fn(usize) -> Response + Send + Sync + 'static) -> Server {
    let answers = AtomicUsize::new(0);
    Server::start(move |received, _| match received.method.as_str() {
        "GET" => Response::json(200, &json!({ "data": [{ "id": "test-model" }] })),
        _ => reply(answers.fetch_add(1, Ordering::Relaxed)),
    })
}

/// Starts a SOCKS5 proxy through which each address leads to `server`. Returns its port.
fn socks_proxy(server: &Server) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let target = server.url().replace("http://", "");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let target = target.clone();
            std::thread::spawn(move || pass_on(client, &target));
        }
    });
    port
}

/// Carries one connection of a SOCKS5 proxy.
fn pass_on(mut client: TcpStream, target: &str) -> io::Result<()> {
    let mut read = |length: usize| -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        client.read_exact(&mut bytes)?;
        Ok(bytes)
    };
    let methods = read(2)?[1];
    read(methods.into())?;
    client.write_all(&[5, 0])?;
    let mut read = |length: usize| -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        client.read_exact(&mut bytes)?;
        Ok(bytes)
    };
    let length = match read(4)?[3] {
        1 => 4,
        3 => read(1)?[0].into(),
        _ => 16,
    };
    read(length + 2)?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
    let mut server = TcpStream::connect(target)?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || io::copy(&mut from, &mut to));
    io::copy(&mut server, &mut client)?;
    client.shutdown(Shutdown::Both)
}

#[test]
fn a_socks_proxy_is_used() {
    for (scheme, host) in [("socks5h", "gateway.example"), ("socks5", "192.0.2.1")] {
        let server = serve(|_| Wire::OpenAi.says("Here."));
        let proxy = format!("{scheme}://127.0.0.1:{}", socks_proxy(&server));
        let scene = Scene::with(
            json!({ "base_url": format!("http://{host}/v1"), "model": "test-model" }),
            &[("ALL_PROXY", &proxy)],
        );
        scene.co("go");
        scene.wait_chat("Here.");
        let hosts = server.received().into_iter();
        let mut hosts = hosts.map(|it| it.header("host").map(str::to_owned));
        assert!(hosts.all(|it| it.as_deref() == Some(host)), "{scheme}");
    }
}

#[test]
fn a_cache_key_is_one_for_each_chat_and_goes_to_the_hosts_that_take_it() {
    const FIELD: &str = "prompt_cache_key";
    const HEADER: &str = "x-grok-conv-id";
    for (wire, host, expected) in [
        (Wire::OpenAi, "api.openai.com", [true, false]),
        (Wire::OpenAi, "api.mistral.ai", [true, false]),
        (Wire::OpenAi, "api.x.ai", [false, true]),
        (Wire::OpenAi, "gateway.example", [false, false]),
        (Wire::Responses, "api.openai.com", [true, false]),
        (Wire::Responses, "api.x.ai", [true, false]),
        (Wire::Responses, "gateway.example", [false, false]),
    ] {
        let server = serve(move |_| wire.says("Here."));
        let scene = Scene::with(
            json!({ "provider": wire.provider(), "base_url": format!("http://{host}/v1") }),
            // A request to any host arrives here.
            &[("http_proxy", &server.url())],
        );
        for turn in 1..=2 {
            scene.co("go");
            scene.wait_turns(turn);
        }
        scene.co("/new");
        let other = "vim.api.nvim_buf_get_name(0) == 'co://chat/2/prompt'";
        scene.wait_for(other, "another chat");
        scene.co("go");
        scene.wait_turns(3);
        let received = server.received().into_iter();
        let keys: Vec<_> = received
            .filter(|it| it.method == "POST")
            .map(|it| {
                let field = it.body[FIELD].as_str().map(str::to_owned);
                [field, it.header(HEADER).map(str::to_owned)]
            })
            .collect();
        let [one, two, three] = &keys[..] else {
            panic!("{wire:?} {host}: three requests, not {keys:?}");
        };
        let places = one.each_ref().map(Option::is_some);
        assert_eq!(places, expected, "{wire:?} {host}");
        assert_eq!(one, two, "{wire:?} {host}");
        assert_eq!(one != three, one != &[None, None], "{wire:?} {host}");
    }
}

#[test]
fn no_prompt_is_sent_while_a_strict_setting_is_wrong() {
    for (name, value) in [
        ("provider", json!("opnai")),
        ("base_url", json!("localhost")),
        ("providers", json!({ "work": { "protocol": "opnai" } })),
        ("sandbox_backend", json!("landlok")),
    ] {
        let scene = Scene::with(json!({ name: value }), &[("OPENAI_API_KEY", "a-key")]);
        scene.co("hello");
        scene.wait_text("no prompt is sent, because");
        assert!(scene.server.requests().is_empty(), "{name}");
    }
}

#[test]
fn no_prompt_is_sent_while_a_strict_setting_is_no_finite_number() {
    for settings in ["{ deny = 0/0 }", "{ model = math.huge }"] {
        let scene = Scene::scripted([]);
        scene.type_keys(&format!(":lua require('co').setup({settings})<CR>"));
        scene.co("hello");
        scene.wait_text("no prompt is sent, because");
        assert!(scene.server.requests().is_empty(), "{settings}");
    }
}

#[test]
fn a_key_of_the_settings_goes_to_no_address_of_the_environment() {
    let other = Scripted::start();
    let environment = [("WORK_KEY", "a-key"), ("CO_CLI_BASE_URL", &other.url())];
    let scene = Scene::with(json!({ "api_key_env": "WORK_KEY" }), &environment);
    scene.co("hello");
    scene.wait_text("no prompt is sent, because the pair of base_url");
    assert!(other.requests().is_empty() && scene.server.requests().is_empty());
}

#[test]
fn nothing_of_one_provider_reaches_another_after_model() {
    let second = Scripted::start();
    let mut scene = Scene::with(
        json!({
            "api_key_env": "FIRST_KEY",
            "headers": { "X-First": "first-header" },
            "extra_body": { "first_field": 1 },
            "max_output_tokens": 77713,
            "effort": "low",
            "providers": { "work": {
                "provider": "openai",
                "base_url": second.url(),
                "api_key_env": "WORK_KEY",
                "headers": { "X-Work": "work-header" },
                "extra_body": { "work_field": 2 },
            } },
        }),
        &[
            ("FIRST_KEY", "first-key"),
            ("WORK_KEY", "work-key"),
            ("OPENAI_API_KEY", "first-usual"),
        ],
    );
    let encrypted = json!({ "choices": [{ "index": 0, "delta": { "reasoning_details": [
        { "type": "reasoning.encrypted", "data": "first-thought", "id": "r", "index": 0 }
    ] } }] });
    let thought = format!("data: {encrypted}\n\n");
    scene.replies([
        Reply::new().raw(thought.as_bytes()).and_shell("c1", "pwd"),
        Reply::text("Here."),
    ]);
    scene.co("where are we?");
    scene.wait_turns(1);
    scene.co("/model work/other");
    scene.wait_text("answers from now on");
    second.reply(Reply::text("Still here."));
    scene.co("and now?");
    scene.wait_turns(2);
    let told = |server: &Scripted| {
        let requests = server.requests().into_iter();
        requests
            .map(|it| format!("{:?} {}", it.headers, it.body))
            .collect::<Vec<_>>()
    };
    let (first, at_work) = (told(&scene.server), told(&second));
    assert_eq!((first.len(), at_work.len()), (2, 1));
    let own = [
        "first-key",
        "first-header",
        "first_field",
        "77713",
        "reasoning_effort",
        "first-thought",
    ];
    for word in own {
        assert!(first[1].contains(word), "{word} is not in {}", first[1]);
        assert!(!at_work[0].contains(word), "{word} is in {}", at_work[0]);
    }
    for word in [
        "Bearer work-key",
        "work-header",
        "work_field",
        "\"model\":\"other\"",
        "where are we?",
    ] {
        assert!(at_work[0].contains(word), "{word} is not in {}", at_work[0]);
    }
    assert!(!at_work[0].contains("first-usual"), "{}", at_work[0]);

    let id = scene.chat_id();
    // This one does not have the profile.
    scene.restart();
    scene.co(&format!("/resume {id}"));
    scene.wait_text("held with the profile work, which is not set");
    let config = scene.home.path().join("config/co-nvim/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let profile = format!(
        "[providers.work]\nprovider = \"openai\"\nbase_url = \"{}\"\n",
        second.url()
    );
    std::fs::write(config, profile).unwrap();
    scene.restart();
    scene.co(&format!("/resume {id}"));
    scene.wait_chat("Still here.");
    second.reply(Reply::text("Here, too."));
    scene.co("and in a resumed chat?");
    scene.wait_chat("Here, too.");
    assert_eq!(
        (scene.server.requests().len(), second.requests().len()),
        (2, 2)
    );
}

#[test]
fn tokens_of_failed_and_cancelled_turns_count() {
    /// The end of an answer, and the tokens that are counted for it.
    struct Case {
        ending: Ending,
        kept: bool,
        reason: &'static str,
        input: u64,
    }
    let case = |ending, kept, reason, input| Case {
        ending,
        kept,
        reason,
        input,
    };
    for case in [
        case(Ending::Hang, true, "cancelled", 11),
        case(Ending::Cut, true, "failed", 11),
        // Nothing of the first answer was kept, so it is asked for again. Both count.
        case(Ending::Cut, false, "done", 22),
    ] {
        let wire = Wire::Anthropic;
        let frames = wire.frames(&Said {
            texts: &["half"],
            ..Said::default()
        });
        let sent = wire.prelude() + usize::from(case.kept);
        let ending = case.ending;
        let server = serve(move |count| match count {
            0 => wire.reply(frames[..sent].to_vec()).ending(ending),
            _ => wire.reply(frames.clone()),
        });
        let scene = Scene::with(
            json!({ "provider": "anthropic", "base_url": server.url(), "model": "test-model" }),
            &[],
        );
        scene.co("go");
        if ending == Ending::Hang {
            scene.wait_chat("half");
            scene.interrupt();
        }
        scene.wait_turns(1);
        let end = scene.items().pop().unwrap();
        assert_eq!(end["reason"], case.reason, "{end}");
        assert_eq!(end["usage"]["input"], case.input, "{end}");
    }
}
