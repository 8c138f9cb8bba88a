//! Token counts and their cost.

use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::Price;

/// Token counts of the provider, and their cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    /// The number of `input` tokens that the provider read from its cache.
    #[serde(default)]
    pub cached: u64,
    /// The number of `input` tokens that the provider wrote to its cache. Some providers charge more for them.
    #[serde(default, skip_serializing_if = "nothing")]
    pub written: u64,
    /// The cost, or `None` if no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// True if the real cost is higher than `cost`, because some tokens have no known price.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// An amount of money in billionths of a US dollar. Sums of whole numbers have no rounding errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(pub u64);

impl Cost {
    /// Returns the cost for an amount of US dollars. Returns `None` if the amount is negative, not a number, or a billion or
    /// more.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked"
    )]
    pub fn of_dollars(dollars: f64) -> Option<Self> {
        let valid = (0.0..1e9).contains(&dollars);
        valid.then(|| Self((dollars * 1e9).round() as u64))
    }

    /// Returns the cost in US dollars.
    #[expect(
        clippy::cast_precision_loss,
        reason = "exact up to nine million dollars"
    )]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dollars() {
            dollars if dollars < 1.0 => write!(to, "${dollars:.4}"),
            dollars => write!(to, "${dollars:.2}"),
        }
    }
}

impl Usage {
    fn is_nothing(&self) -> bool {
        self.input == 0 && self.output == 0
    }

    /// Returns true if the whole cost is known.
    fn is_priced(&self) -> bool {
        self.is_nothing() || self.cost.is_some() && !self.at_least
    }

    /// Returns the same token counts with their cost at `price`. A cost that the provider reported stays.
    #[must_use]
    pub fn priced(self, price: Option<Price>) -> Self {
        let cost = self.cost.or(price.map(|price| price.of(&self)));
        Self { cost, ..self }
    }
}

impl Price {
    /// Returns the cost of these tokens.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "token counts are small, prices are neither negative nor infinite"
    )]
    pub fn of(&self, usage: &Usage) -> Cost {
        let fresh = usage.input.saturating_sub(usage.cached + usage.written);
        let millionths = fresh as f64 * self.input
            + usage.cached as f64 * self.cached
            + usage.written as f64 * self.written
            + usage.output as f64 * self.output;
        Cost((millionths * 1e3).round() as u64)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        let is_priced = self.is_priced() && other.is_priced();
        self.cost = match (self.cost, other.cost) {
            (Some(a), Some(b)) => Some(Cost(a.0 + b.0)),
            (a, b) => a.or(b),
        };
        self.at_least = self.cost.is_some() && !is_priced;
        self.input += other.input;
        self.output += other.output;
        self.cached += other.cached;
        self.written += other.written;
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "{} tokens in ({} cached), {} out",
            self.input, self.cached, self.output
        )?;
        match self.cost {
            Some(cost) if self.at_least => write!(to, ", ≥ {cost}"),
            Some(cost) => write!(to, ", {cost}"),
            None => Ok(()),
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn nothing(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, cost: Option<u64>) -> Usage {
        Usage {
            input,
            cost: cost.map(Cost),
            ..Usage::default()
        }
    }

    #[test]
    fn a_sum_costs_at_least_what_its_parts_with_a_price_do() {
        let sum = |parts: &[Usage]| {
            let mut sum = Usage::default();
            parts.iter().for_each(|part| sum += *part);
            sum
        };
        let known = usage(1, Some(5));
        assert_eq!(sum(&[known, known]), usage(2, Some(10)));
        assert_eq!(sum(&[known, usage(0, None), known]), usage(2, Some(10)));
        let unknown = usage(1, None);
        let at_least = Usage {
            at_least: true,
            ..usage(2, Some(5))
        };
        assert_eq!(sum(&[known, unknown]), at_least);
        assert_eq!(sum(&[unknown, known]), at_least);
        assert_eq!(sum(&[unknown, unknown]), usage(2, None));
        assert_eq!(sum(&[at_least, known]).cost, Some(Cost(10)));
        assert!(sum(&[known, at_least]).at_least);
        assert!(at_least.to_string().ends_with(", ≥ $0.0000"));
        assert_eq!(sum(&[]), usage(0, None));
    }

    #[test]
    fn money_is_said_with_the_digits_that_matter() {
        let check = |billionths, expected: &str| assert_eq!(Cost(billionths).to_string(), expected);
        check(0, "$0.0000");
        check(1_234_567, "$0.0012");
        check(999_900_000, "$0.9999");
        check(12_345_678_901, "$12.35");
    }

    #[test]
    fn older_records_have_no_cost() {
        let old: Usage = serde_json::from_str(r#"{"input":3,"output":1,"cached":2}"#).unwrap();
        assert_eq!((old.input, old.cached, old.cost), (3, 2, None));
        let text = serde_json::to_string(&old).unwrap();
        assert_eq!(text, r#"{"input":3,"output":1,"cached":2}"#);
    }
}
