use serde_json::json;

use super::*;

fn info() -> RequestInfo {
    crate::remote::request_info::test_info(crate::provider_table::Protocol::OpenAi)
}

fn http(status: u16, body: &str, headers: &[(&'static str, &str)]) -> Fault {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, value.parse().unwrap());
    }
    info().http(StatusCode::from_u16(status).unwrap(), body, &map)
}

#[test]
fn statuses_are_told_apart() {
    assert!(matches!(http(429, "", &[]), Fault::RateLimited { .. }));
    for status in [408, 500, 502, 503, 529] {
        assert!(
            matches!(http(status, "", &[]), Fault::Server { .. }),
            "{status}"
        );
    }
    assert_eq!(
        http(401, r#"{"error": {"message": "no such key"}}"#, &[]),
        Fault::Unauthorized {
            provider: "OpenAI".into(),
            status: 401,
            source_name: "OPENAI_API_KEY".into(),
            body: "no such key".into(),
        }
    );
    let without_key = RequestInfo {
        key_source: None,
        ..info()
    };
    assert_eq!(
        without_key.http(StatusCode::UNAUTHORIZED, "", &HeaderMap::new()),
        Fault::NoKey {
            provider: "OpenAI".into(),
            variable: Some("OPENAI_API_KEY".into()),
        }
    );
    assert!(matches!(http(403, "", &[]), Fault::Forbidden { .. }));
    assert!(matches!(http(404, "", &[]), Fault::NotFound { .. }));
    assert!(matches!(http(400, "", &[]), Fault::BadRequest { .. }));
    assert!(matches!(http(422, "", &[]), Fault::BadRequest { .. }));
    assert!(matches!(http(413, "", &[]), Fault::TooLarge { .. }));
    assert!(matches!(http(302, "", &[]), Fault::HtmlPage { .. }));
    for (statuses, may_pass) in [
        (&[408, 429, 500, 503][..], true),
        (&[302, 400, 401, 403, 404, 413], false),
    ] {
        for status in statuses {
            let fault = http(*status, "", &[]);
            assert_eq!(fault.is_transient(), may_pass, "{status}");
        }
    }
}

#[test]
fn a_quota_that_is_used_up_is_told_by_its_code_alone() {
    let check = |status: u16, body: Value, used_up: bool| {
        let fault = http(status, &body.to_string(), &[("retry-after", "5")]);
        assert_eq!(
            matches!(fault, Fault::QuotaUsedUp { .. }),
            used_up,
            "{body}: {fault:?}"
        );
        assert_ne!(fault.is_transient(), used_up, "{body}: {fault:?}");
    };
    let coded = |code: &str| json!({"error": {"code": code, "message": "x"}});
    let typed = |kind: &str| json!({"error": {"type": kind, "message": "x"}});
    check(429, coded("insufficient_quota"), true);
    check(429, typed("insufficient_quota"), true);
    check(429, coded("billing_hard_limit_reached"), true);
    check(402, typed("billing_error"), true);
    check(402, Value::Null, true);
    check(429, coded("rate_limit_exceeded"), false);
    check(
        429,
        json!({"error": {"message": "insufficient_quota: check your billing"}}),
        false,
    );
    check(429, json!("insufficient_quota"), false);
    let inside = info().event(&json!({"code": "insufficient_quota", "message": "x"}));
    assert!(matches!(inside, Fault::QuotaUsedUp { .. }), "{inside:?}");
}

/// None of them is for the model to correct.
#[test]
fn faults_of_the_account_that_come_as_a_400() {
    let told = |message: &str| {
        http(
            400,
            &json!({"error": {"message": message}}).to_string(),
            &[],
        )
    };
    for bad_key in [
        "API key not valid. Please pass a valid API key.",
        "Incorrect API key provided: ab***c. You can obtain an API key from the console.",
    ] {
        let fault = told(bad_key);
        assert!(
            matches!(&fault, Fault::Unauthorized { status: 400, body, .. } if body == bad_key),
            "{fault:?}"
        );
    }
    let no_credit = told("Your credit balance is too low to access the Anthropic API.");
    assert!(
        matches!(no_credit, Fault::QuotaUsedUp { .. }),
        "{no_credit:?}"
    );
    let unverified = told("Your organization must be verified to use the model `m`.");
    assert!(
        matches!(unverified, Fault::Forbidden { .. }),
        "{unverified:?}"
    );
}

#[test]
fn a_proxys_page_is_no_refused_key() {
    let page = "<!DOCTYPE html><html><body>Login</body></html>";
    assert!(matches!(http(403, page, &[]), Fault::HtmlPage { .. }));
    assert!(matches!(
        http(404, "gone", &[("content-type", "text/html; charset=utf-8")]),
        Fault::HtmlPage { .. }
    ));
    // A gateway's page over a server that is down goes by.
    assert!(matches!(http(502, page, &[]), Fault::Server { .. }));
}

#[test]
fn overflow_by_name_and_where_there_is_none_by_sentence() {
    for body in [
        json!({"error": {"code": "context_length_exceeded", "message": "x"}}),
        json!({"error": {"type": "exceed_context_size_error", "message": "x"}}),
        json!({"type": "error", "error": {"type": "invalid_request_error",
               "message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
        json!([{"error": {"status": "INVALID_ARGUMENT",
               "message": "The input token count (2) exceeds the maximum"}}]),
    ] {
        let fault = http(400, &body.to_string(), &[]);
        assert!(matches!(fault, Fault::Overflow { .. }), "{body}: {fault:?}");
    }
    let other = json!({"error": {"type": "invalid_request_error", "message": "bad tool"}});
    assert_eq!(
        http(400, &other.to_string(), &[]),
        Fault::BadRequest {
            provider: "OpenAI".into(),
            body: "bad tool".into()
        }
    );
}

#[test]
fn an_echoed_key_is_not_shown() {
    let body = json!({"error": {"message": "unknown thing sk-very-secret given"}});
    let Fault::BadRequest { body, .. } = http(400, &body.to_string(), &[]) else {
        panic!("not a bad request");
    };
    assert_eq!(body, "unknown thing [key] given");
}

#[test]
fn errors_inside_an_answer_go_by_their_type() {
    let check = |body: Value, expected: fn(&Fault) -> bool| {
        let fault = info().event(&body);
        assert!(expected(&fault), "{body}: {fault:?}");
    };
    check(
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        |fault| matches!(fault, Fault::Server { status: 529, .. }),
    );
    check(json!({"type": "server_error", "message": "x"}), |fault| {
        matches!(fault, Fault::Server { status: 500, .. })
    });
    check(json!({"code": 429, "message": "x"}), |fault| {
        matches!(fault, Fault::RateLimited { .. })
    });
    check(json!({"code": "context_length_exceeded"}), |fault| {
        matches!(fault, Fault::Overflow { .. })
    });
    check(json!({"code": "invalid_api_key"}), |fault| {
        matches!(fault, Fault::Unauthorized { .. })
    });
    check(Value::Null, |fault| matches!(fault, Fault::Server { .. }));
    for refusal in [
        // LiteLLM
        json!({"message": "x", "type": null, "param": null, "code": "400"}),
        json!({"message": "x", "type": "BadRequestError", "code": null}),
        json!({"message": "x", "code": "InvalidParameter", "type": "BadRequest"}),
        json!({"message": "x", "type": "invalid_params"}),
        // text-generation-inference
        json!({"error": "x", "error_type": "validation"}),
    ] {
        check(
            refusal,
            |fault| matches!(fault, Fault::BadRequest { body, .. } if body == "x"),
        );
    }
}

#[test]
fn a_servers_words_are_found_where_servers_put_them_and_kept_short() {
    let told = |body: &str| match http(400, body, &[]) {
        Fault::BadRequest { body, .. } => body,
        other => panic!("{other:?}"),
    };
    assert_eq!(told(r#"{"error": {"message": "inner"}}"#), "inner");
    assert_eq!(told(r#"[{"error": {"message": "listed"}}]"#), "listed");
    assert_eq!(told(r#"{"message": "outer"}"#), "outer");
    assert_eq!(told(r#"{"error": "bare"}"#), "bare");
    assert_eq!(told(" no JSON\n"), "no JSON");
    // The input of the person is not repeated.
    let fault = json!({"type": "string_type", "loc": ["body", "messages", 2, "content"], "msg": "Input should be a string",
        "input": "secret words"});
    let place = "body.messages.2.content: Input should be a string";
    assert_eq!(told(&json!({"detail": [fault]}).to_string()), place);
    let mistral = json!({"object": "error", "message": {"detail": [fault]}, "code": null});
    assert_eq!(told(&mistral.to_string()), place);
    let many = json!({"detail": [fault, fault, fault, fault, fault]});
    assert_eq!(told(&many.to_string()).matches(place).count(), 3);
    assert_eq!(told(r#"{"detail": "Bad thing"}"#), "Bad thing");
    assert_eq!(
        told(r#"{"error": {"message": ""}, "message": "outer"}"#),
        "outer"
    );
    let long = told(&"ä".repeat(MAX_BODY_CHARS + 1));
    assert_eq!(long, "ä".repeat(MAX_BODY_CHARS) + "…");
}

#[test]
fn a_number_that_is_no_error_status_says_nothing() {
    let fault = info().event(&json!({"code": 200, "message": "x"}));
    assert!(
        matches!(fault, Fault::Server { status: 500, .. }),
        "{fault:?}"
    );
}

#[test]
fn overflow_is_told_whatever_the_status() {
    let body = json!({"error": {"message": "Input is too long for requested model."}}).to_string();
    for status in [400, 413, 422, 429, 500, 503] {
        let fault = http(status, &body, &[]);
        assert!(
            matches!(fault, Fault::Overflow { .. }),
            "{status}: {fault:?}"
        );
    }
    let page = "<html><head><title>413 Request Entity Too Large</title></head></html>";
    let fault = http(413, page, &[("content-type", "text/html")]);
    assert!(
        matches!(&fault, Fault::TooLarge { body, .. } if body.is_empty()),
        "{fault:?}"
    );
}

#[test]
fn the_words_of_the_server_behind_a_gateway_are_told() {
    let raw = json!({"error": {"message": "at most 1 image per prompt."}}).to_string();
    for (raw, words) in [
        (raw.as_str(), "at most 1 image per prompt."),
        ("no JSON", "no JSON"),
        ("", "Provider returned error"),
    ] {
        let body = json!({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}});
        let fault = http(400, &body.to_string(), &[]);
        assert!(
            matches!(&fault, Fault::BadRequest { body, .. } if body == words),
            "{fault:?}"
        );
    }
}
