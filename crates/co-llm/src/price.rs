//! Prices of tokens, from the person's settings or the vendor's list.

use serde::Deserialize;

/// The price of one model in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "PriceSetting")]
pub struct Price {
    pub input: f64,
    /// The price of input tokens that the provider reads from its cache.
    pub cached: f64,
    /// The price of input tokens that the provider writes to its cache.
    pub written: f64,
    pub output: f64,
}

/// A price in the settings. A missing field has the value of `input`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceSetting {
    input: f64,
    cached: Option<f64>,
    written: Option<f64>,
    output: f64,
}

impl TryFrom<PriceSetting> for Price {
    type Error = &'static str;

    fn try_from(given: PriceSetting) -> Result<Self, Self::Error> {
        let price = Self {
            input: given.input,
            cached: given.cached.unwrap_or(given.input),
            written: given.written.unwrap_or(given.input),
            output: given.output,
        };
        let all = [price.input, price.cached, price.written, price.output];
        match all.iter().all(|dollars| (0.0..=1e6).contains(dollars)) {
            true => Ok(price),
            false => Err("a price is a number of dollars"),
        }
    }
}

/// A list of prices. Each price has the name `provider/model` or the name of the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices(pub Vec<(String, Price)>);

impl Prices {
    /// Returns the price of the model with this label (`Provider::label`).
    pub fn find(&self, label: &str) -> Option<Price> {
        let model = label.split_once('/').map_or(label, |(_, model)| model);
        [label, model].iter().find_map(|name| {
            let named = self.0.iter().find(|(given, _)| given == name)?;
            Some(named.1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{Cost, Usage};

    fn price(json: &str) -> Result<Price, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn what_is_left_out_costs_as_other_input() {
        let full = price(r#"{"input": 3, "cached": 0.3, "written": 3.75, "output": 15}"#).unwrap();
        let short = price(r#"{"input": 3, "output": 15}"#).unwrap();
        let usage = Usage {
            input: 1_000_000,
            cached: 400_000,
            written: 100_000,
            output: 10_000,
            ..Usage::default()
        };
        assert_eq!(full.of(&usage), Cost(2_145_000_000));
        assert_eq!(short.of(&usage), Cost(3_150_000_000));
        assert_eq!(short.of(&Usage::default()), Cost(0));
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for json in [
            r#"{"input": 3}"#,
            r#"{"input": -1, "output": 1}"#,
            r#"{"input": "3", "output": 1}"#,
            r#"{"input": 3, "output": 1, "cache": 1}"#,
        ] {
            assert!(price(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_model_of_a_provider_goes_before_the_model() {
        let flat = |dollars| Price {
            input: dollars,
            cached: dollars,
            written: dollars,
            output: dollars,
        };
        let prices = Prices(vec![
            ("m".into(), flat(1.0)),
            ("openai/m".into(), flat(2.0)),
            ("vendor/n".into(), flat(3.0)),
        ]);
        let find = |label| prices.find(label).map(|price| price.input);
        assert_eq!(find("openai/m"), Some(2.0));
        assert_eq!(find("ollama/m"), Some(1.0));
        assert_eq!(find("openai/vendor/n"), Some(3.0));
        assert_eq!(find("openai/other"), None);
    }
}
