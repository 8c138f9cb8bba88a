use super::*;
use crate::remote::request_info::test_info;
use crate::transcript::test_items::png;

fn at(protocol: Protocol, host: &str, model: &str) -> RequestInfo {
    RequestInfo {
        host: host.into(),
        model: model.into(),
        title: "Server".into(),
        ..test_info(protocol)
    }
}

fn claude() -> RequestInfo {
    at(Protocol::Anthropic, "api.anthropic.com", "claude-x")
}

fn openai() -> RequestInfo {
    at(Protocol::OpenAi, "api.openai.com", "gpt-x")
}

fn encoded(bytes: &[u8]) -> Image {
    Image {
        media_type: "image/png".into(),
        data: BASE64_STANDARD.encode(bytes),
    }
}

/// Returns the start of a GIF with these sides, and its end.
fn gif(width: u16, height: u16, moving: bool) -> Image {
    let sides = [width.to_le_bytes(), height.to_le_bytes()].concat();
    let loops: &[u8] = if moving { b"NETSCAPE2.0" } else { b"" };
    encoded(&[b"GIF89a", &sides[..], &[0; 3], loops, b"\x3b"].concat())
}

/// Returns the type of an image that is sent, or the reason why it is not.
fn sent(info: &RequestInfo, image: &Image) -> Result<String, String> {
    choose(info, &[image]).remove(0).map(|it| it.media_type)
}

#[test]
fn bytes_that_are_no_image_are_left_out() {
    let no_image = Err("its bytes are no whole image".to_owned());
    for info in [claude(), openai(), at(Protocol::Ollama, "h", "llava")] {
        assert_eq!(sent(&info, &encoded(b"no image")), no_image);
        assert_eq!(sent(&info, &encoded(b"\x89PNG\r\n\x1a\n")), no_image);
        assert_eq!(sent(&info, &encoded(b"")), no_image);
        assert_eq!(sent(&info, &png(0, 9)), no_image);
        let no_base64 = Image {
            media_type: "image/png".into(),
            data: "§".into(),
        };
        assert_eq!(sent(&info, &no_base64), no_image);
        assert_eq!(sent(&info, &png(9, 9)), Ok("image/png".into()));
        let mut cut = BASE64_STANDARD.decode(png(9, 9).data).unwrap();
        cut.truncate(cut.len() - 12);
        assert_eq!(sent(&info, &encoded(&cut)), no_image);
    }
}

#[test]
fn the_type_is_that_of_the_bytes() {
    let mut image = png(2, 2);
    image.media_type = "image/jpeg".into();
    assert_eq!(sent(&claude(), &image), Ok("image/png".into()));
    assert_eq!(sent(&claude(), &gif(2, 2, false)), Ok("image/gif".into()));
}

#[test]
fn limits_by_server() {
    let check = |info: &RequestInfo, image: &Image, words: &str| match sent(info, image) {
        Ok(_) => assert_eq!(words, ""),
        Err(reason) => assert!(!words.is_empty() && reason.contains(words), "{reason}"),
    };
    let gemini = at(Protocol::Gemini, "h", "gemini-3");
    let mistral = at(Protocol::OpenAi, "api.mistral.ai", "mistral-large");
    let groq = at(Protocol::OpenAi, "api.groq.com", "llama-4");
    let gateway = at(Protocol::OpenAi, "gateway", "anthropic/claude-x");
    check(
        &claude(),
        &png(9_000, 100),
        "9000x100 pixels, and Server takes up to 8000",
    );
    check(&gateway, &png(100, 9_000), "8000 a side");
    check(&claude(), &png(8_000, 8_000), "");
    check(&openai(), &png(9_000, 100), "");
    check(&mistral, &png(9_000, 100), "");
    check(&mistral, &png(10_001, 1), "10000 a side");
    check(&groq, &png(6_000, 6_000), "more than Server takes");
    check(&gemini, &gif(2, 2, false), "Server takes no GIF");
    check(&openai(), &gif(2, 2, true), "takes no GIF that moves");
    check(&claude(), &gif(2, 2, true), "");
    let long = |length: usize| {
        let mut bytes = BASE64_STANDARD.decode(png(2, 2).data).unwrap();
        bytes.resize(length, 0);
        encoded(&bytes)
    };
    check(&claude(), &long(3_900_000), "");
    check(&claude(), &long(4_000_000), "larger than Server takes");
    check(&openai(), &long(4_000_000), "");
    check(&groq, &long(3_000_000), "larger");
}

/// Returns the indexes of the images that are sent, of `number` images.
fn kept(info: &RequestInfo, number: usize, side: u32) -> Vec<usize> {
    let image = png(side, 1);
    let sent = choose(info, &vec![&image; number]);
    let kept = sent.iter().enumerate().filter(|(_, it)| it.is_ok());
    kept.map(|(at, _)| at).collect()
}

#[test]
fn the_newest_images_fit_and_the_older_ones_go_at_once() {
    let mistral = at(Protocol::OpenAi, "api.mistral.ai", "mistral-large");
    assert_eq!(kept(&mistral, 8, 9), Vec::from_iter(0..8));
    assert_eq!(kept(&mistral, 9, 9), Vec::from_iter(5..9));
    assert_eq!(kept(&mistral, 12, 9), Vec::from_iter(5..12));
    assert_eq!(kept(&mistral, 13, 9), Vec::from_iter(5..13));
    assert_eq!(kept(&mistral, 14, 9), Vec::from_iter(10..14));
    assert_eq!(kept(&claude(), 21, 2_000).len(), 21);
    assert_eq!(kept(&claude(), 20, 2_001).len(), 20);
    assert_eq!(kept(&claude(), 21, 2_001), [0; 0]);
}
