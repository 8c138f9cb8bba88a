//! Reads the waiting time that a server asks for, in all forms that servers use.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

/// Returns the waiting time in the headers or the body of an error.
pub(super) fn retry_after(headers: &HeaderMap, body: &str) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    header("retry-after-ms")
        .and_then(number)
        .map(|ms| ms / 1000.0)
        .or_else(|| header("retry-after").and_then(number))
        .or_else(|| header("retry-after").and_then(|date| until(date, OffsetDateTime::now_utc())))
        .or_else(|| retry_delay(body))
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

fn number(text: &str) -> Option<f64> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// Returns the waiting time in seconds in an error body of Gemini, such as `"retryDelay": "38s"`.
fn retry_delay(body: &str) -> Option<f64> {
    let parsed: Value = serde_json::from_str(body).ok()?;
    let error = parsed.get(0).unwrap_or(&parsed).get("error")?;
    let delay = error
        .get("details")?
        .as_array()?
        .iter()
        .find_map(|detail| detail.get("retryDelay")?.as_str())?;
    number(delay.strip_suffix('s')?)
}

/// Returns the number of seconds until a date such as `Wed, 21 Oct 2026 07:28:00 GMT`, or 0 if the date is past.
fn until(date: &str, now: OffsetDateTime) -> Option<f64> {
    let date = OffsetDateTime::parse(date, &Rfc2822).ok()?;
    Some((date - now).as_seconds_f64().max(0.0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(headers: &[(&'static str, &str)], body: &str, expected: Option<f64>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        assert_eq!(
            retry_after(&map, body),
            expected.map(Duration::from_secs_f64),
            "{headers:?} {body}"
        );
    }

    #[test]
    fn numbers() {
        check(&[("retry-after", "5")], "", Some(5.0));
        check(&[("retry-after", "0.5")], "", Some(0.5));
        check(
            &[("retry-after-ms", "250"), ("retry-after", "5")],
            "",
            Some(0.25),
        );
        for nonsense in ["soon", "-1", "inf", "NaN", ""] {
            check(&[("retry-after", nonsense)], "", None);
        }
        let body = json!({"error": {"details": [{"@type": "x"}, {"retryDelay": "38s"}]}});
        check(&[], &body.to_string(), Some(38.0));
    }

    #[test]
    fn dates() {
        let now = OffsetDateTime::from_unix_timestamp(1_792_567_680).unwrap();
        let check =
            |date: &str, expected: Option<f64>| assert_eq!(until(date, now), expected, "{date}");
        check("Wed, 21 Oct 2026 07:28:30 GMT", Some(30.0));
        check("Thu, 22 Oct 2026 07:28:00 GMT", Some(86_400.0));
        check("Fri, 21 Oct 2022 07:28:30 GMT", Some(0.0));
        check("Wed, 21 Oct 2026", None);
        check("Fri, 31 Dec 9223372036854775807 23:59:59 GMT", None);
        check("tomorrow, maybe", None);
    }
}
