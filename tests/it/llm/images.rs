//! Images in prompts.

use co_llm::transcript::{Context, Image, Item};
use serde_json::json;

use super::requests::sent;
use super::wire::{WIRES, Wire};

/// Returns a prompt with an image whose bytes are `IMAGE`.
fn with_image() -> Item {
    Item::User {
        text: "what is this?".into(),
        context: vec![Context {
            name: "@file:shot.png".into(),
            image: Some(Image {
                media_type: "image/png".into(),
                data: "SU1BR0U=".into(),
            }),
            ..Context::default()
        }],
    }
}

#[tokio::test]
async fn an_image_goes_in_the_form_of_each_protocol() {
    let url = "data:image/png;base64,SU1BR0U=";
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
                       {"type": "base64", "media_type": "image/png", "data": "SU1BR0U="}}),
            ),
            Wire::Gemini => (
                "/contents/0/parts/0",
                json!({"inlineData": {"mimeType": "image/png", "data": "SU1BR0U="}}),
            ),
            Wire::Ollama => ("/messages/1/images/0", json!("SU1BR0U=")),
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
        assert!(!text.contains("SU1BR0U="), "{wire:?}: {text}");
        assert!(text.contains("@file:shot.png"), "{wire:?}: {text}");
        assert!(
            text.contains("left out because you take none"),
            "{wire:?}: {text}"
        );
    }
}
