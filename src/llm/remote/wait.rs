//! How long a server asks to wait, in the forms servers say it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::HeaderMap;
use serde_json::Value;

/// Returns the wait a refusal names, in its headers or its body.
pub(super) fn retry_after(headers: &HeaderMap, body: &str) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    header("retry-after-ms")
        .and_then(number)
        .map(|ms| ms / 1000.0)
        .or_else(|| header("retry-after").and_then(number))
        .or_else(|| header("retry-after").and_then(|date| until(date, SystemTime::now())))
        .or_else(|| retry_delay(body))
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

fn number(text: &str) -> Option<f64> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// Gemini says it in the body: `"retryDelay": "38s"`.
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

/// Returns the seconds until a date such as `Wed, 21 Oct 2026 07:28:00 GMT`, none of them if it is past.
fn until(date: &str, now: SystemTime) -> Option<f64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut words = date.split_once(", ")?.1.split(' ');
    let day: i64 = words.next()?.parse().ok()?;
    let name = words.next().filter(|name| name.len() == 3)?;
    let month = i64::try_from(MONTHS.find(name)? / 3).ok()? + 1;
    let year: i64 = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(str::parse::<i64>);
    let mut part = || clock.next()?.ok();
    let (hour, minute, second) = (part()?, part()?, part()?);
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    let now = now.duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
    Some((seconds as f64 - now).max(0.0))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar; years begin in March, so that the odd day is last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
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
        let now = UNIX_EPOCH + Duration::from_secs(1_792_567_680);
        let check =
            |date: &str, expected: Option<f64>| assert_eq!(until(date, now), expected, "{date}");
        check("Wed, 21 Oct 2026 07:28:30 GMT", Some(30.0));
        check("Thu, 22 Oct 2026 07:28:00 GMT", Some(86_400.0));
        check("Fri, 21 Oct 2022 07:28:30 GMT", Some(0.0));
        check("Wed, 21 Oct 2026", None);
        check("tomorrow, maybe", None);
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2000, 3, 1), 11_017);
        assert_eq!(days(2024, 2, 29), 19_782);
    }
}
