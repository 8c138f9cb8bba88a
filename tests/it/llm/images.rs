//! Images in prompts.

use co_llm::transcript::{Context, Image, Item};
use co_llm::{Delta, ProviderSettings};
use serde_json::json;

use super::requests::sent;
use super::wire::{WIRES, Wire, ask, key, request, text, user};
use crate::support::http::{Response, Server};

fn said(text: &str) -> Item {
    Item::Text { text: text.into() }
}

/// One black pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";

fn with_image() -> Item {
    with_bytes(PNG)
}

/// Returns a prompt with an image of these bytes, in base64.
fn with_bytes(data: &str) -> Item {
    Item::User {
        text: "what is this?".into(),
        context: vec![Context {
            name: "@file:shot.png".into(),
            image: Some(Image {
                media_type: "image/png".into(),
                data: data.into(),
            }),
            ..Context::default()
        }],
        at: None,
    }
}

#[tokio::test]
async fn an_image_goes_in_the_form_of_each_protocol() {
    let url = format!("data:image/png;base64,{PNG}");
    for wire in WIRES {
        let received = sent(wire, vec![with_image()], |it| it.images = Some(true)).await;
        let (place, expected) = match wire {
            Wire::OpenAi | Wire::OpenRouter => (
                "/messages/1/content/0",
                json!({"type": "image_url", "image_url": {"url": url}}),
            ),
            Wire::Responses => (
                "/input/0/content/0",
                json!({"type": "input_image", "image_url": url}),
            ),
            Wire::Anthropic => (
                "/messages/0/content/0",
                json!({"type": "image", "source":
                       {"type": "base64", "media_type": "image/png", "data": PNG}}),
            ),
            Wire::Gemini => (
                "/contents/0/parts/0",
                json!({"inlineData": {"mimeType": "image/png", "data": PNG}}),
            ),
            Wire::Ollama => ("/messages/1/images/0", json!(PNG)),
        };
        let found = received.body.pointer(place);
        assert_eq!(found, Some(&expected), "{wire:?}: {}", received.body);
        let text = received.body.to_string();
        assert!(text.contains("what is this?"), "{wire:?}: {text}");
        assert!(
            text.contains("(an image of this message)"),
            "{wire:?}: {text}"
        );
    }
}

#[tokio::test]
async fn a_model_that_takes_no_images_learns_their_names() {
    for wire in WIRES {
        let received = sent(wire, vec![with_image()], |it| it.images = Some(false)).await;
        let text = received.body.to_string();
        assert!(!text.contains(PNG), "{wire:?}: {text}");
        assert!(text.contains("@file:shot.png"), "{wire:?}: {text}");
        assert!(
            text.contains("left out because you take none"),
            "{wire:?}: {text}"
        );
    }
}

#[tokio::test]
async fn an_image_that_the_server_would_refuse_is_named_and_the_person_is_told() {
    // A PNG of 9000x100 pixels, of which only the header and the end exist; eight bytes that are no image.
    let wide = "iVBORw0KGgoAAAANSUhEUgAAIygAAABkCAIAAAAAAAAAAAAAAElFTkSuQmCC";
    for (data, reason) in [
        (wide, "it has 9000x100 pixels"),
        ("ZWlnaHQgYnk=", "its bytes are no whole image"),
    ] {
        let server =
            Server::start(
                move |received, _| match received.body.to_string().contains(data) {
                    true => Response::json(
                        400,
                        &json!({"error": {"message": "Could not process image"}}),
                    ),
                    false => Wire::Anthropic.says("ok"),
                },
            );
        let settings = ProviderSettings {
            images: Some(true),
            ..Wire::Anthropic.settings(&server.url())
        };
        let provider = co_llm::make_provider(&settings, &key).expect("a provider");
        let deltas = ask(provider.as_ref(), request(vec![with_bytes(data)])).await;
        assert_eq!(text(&deltas), "ok", "{deltas:?}");
        let told = deltas.iter().any(|delta| {
            matches!(delta, Ok(Delta::Notice(text))
                if text.starts_with(&format!("left out: @file:shot.png: {reason}")))
        });
        assert!(told, "{deltas:?}");
        let sent = server.received().remove(0).body.to_string();
        assert!(sent.contains(reason), "{sent}");
        let later = vec![with_bytes(data), said("I see."), user("sure?")];
        let deltas = ask(provider.as_ref(), request(later)).await;
        let told = deltas.iter().any(|it| matches!(it, Ok(Delta::Notice(_))));
        assert!(!told, "it is said once: {deltas:?}");
    }
}
