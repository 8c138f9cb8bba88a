//! The kinds of settings, and the conversion of values to them.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Config;
use co_exec::names_variables;
use co_llm::Prices;
use co_policy::{HostPattern, Pattern};

/// The type of a setting, with the function that sets it.
pub(super) enum Kind {
    Flag(fn(&mut Config, bool)),
    Number(RangeInclusive<u64>, fn(&mut Config, u64)),
    /// A whole number, or `none` for no limit.
    Limit(RangeInclusive<u64>, fn(&mut Config, Option<u64>)),
    Decimal(RangeInclusive<f64>, fn(&mut Config, f64)),
    /// A number of bytes.
    Size(RangeInclusive<u64>, fn(&mut Config, u64)),
    /// A number of bytes, or `none` for no limit. The first field is the smallest allowed number.
    SizeLimit(u64, fn(&mut Config, Option<u64>)),
    Choice(&'static [&'static str], fn(&mut Config, &str)),
    Text(fn(&mut Config, String)),
    /// A text that is checked by a function.
    Checked {
        accepts: &'static str,
        check: fn(&str) -> bool,
        set: fn(&mut Config, &str),
    },
    Url(fn(&mut Config, String)),
    Path(fn(&mut Config, PathBuf)),
    /// Paths. They stay as written, because each use may have a different home directory.
    Paths(fn(&mut Config, Vec<PathBuf>)),
    Words(fn(&mut Config, Vec<String>)),
    /// Rules about commands. If one rule is wrong, the setting is reported as wrong, but the other rules apply.
    Rules(fn(&mut Config, Vec<String>)),
    /// Rules about hosts. If one rule is wrong, the setting is reported as wrong, but the other rules apply.
    Hosts(fn(&mut Config, Vec<HostPattern>)),
    /// Names of environment variables.
    Variables(fn(&mut Config, Vec<String>)),
    /// A command line (argv): a program and its arguments.
    Argv(fn(&mut Config, Vec<String>)),
    Pairs(fn(&mut Config, Vec<(String, String)>)),
    Object(fn(&mut Config, Value)),
    Prices(fn(&mut Config, Prices)),
    /// A table of named tables of settings, which a function reads.
    Tables {
        accepts: &'static str,
        read: fn(&mut Config, &Value, Option<&Path>) -> Result<(), BadValue>,
    },
}

/// The error for a value that does not fit its kind. [`Kind::accepts`] describes valid values.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadValue;

impl Kind {
    /// Returns the possible values of a `Choice`. The list is empty for any other kind.
    pub(super) fn choices(&self) -> &'static [&'static str] {
        match self {
            Self::Choice(of, _) => of,
            _ => &[],
        }
    }

    /// Returns a description of valid values, to follow "must be".
    pub(super) fn accepts(&self) -> String {
        match self {
            Self::Flag(_) => "true or false".to_owned(),
            Self::Number(range, _) => format!("a whole number {}", ends(range)),
            Self::Limit(range, _) => format!("a whole number {}, or \"none\"", ends(range)),
            Self::Decimal(range, _) => format!("a number {}", ends(range)),
            Self::Size(range, _) => format!(
                "a size from {} to {}, in bytes or such as \"64MiB\"",
                size_text(*range.start()),
                size_text(*range.end())
            ),
            Self::SizeLimit(least, _) => format!(
                "a size from {} up, in bytes or such as \"64MiB\", or \"none\"",
                size_text(*least)
            ),
            Self::Choice(of, _) => format!("one of {}", of.join(", ")),
            Self::Text(_) => "a text that is not empty".to_owned(),
            Self::Checked { accepts, .. } => (*accepts).to_owned(),
            Self::Url(_) => "an address that starts with http:// or https://".to_owned(),
            Self::Path(_) => "an absolute path, or one that starts with ~/".to_owned(),
            Self::Paths(_) => "a list of absolute paths, or ones that start with ~/".to_owned(),
            Self::Words(_) => "a list of texts".to_owned(),
            Self::Rules(_) => "a list of rules, each about one command".to_owned(),
            Self::Hosts(_) => {
                "a list of hosts, as example.org, *.example.org or example.org:8080".to_owned()
            }
            Self::Variables(_) => "a list of variables, as NAME or PREFIX_*".to_owned(),
            Self::Argv(_) => "a list of texts, a program and its arguments".to_owned(),
            Self::Pairs(_) => "a table from names to texts".to_owned(),
            Self::Object(_) => "a table".to_owned(),
            Self::Tables { accepts, .. } => (*accepts).to_owned(),
            Self::Prices(_) => {
                "a table from models to tables of input, output, and if they differ \
                                cached and written, in US dollars per million tokens"
                    .to_owned()
            }
        }
    }

    /// Sets the setting to a value from TOML or Lua.
    pub(super) fn take(
        &self,
        config: &mut Config,
        value: &Value,
        home: Option<&Path>,
    ) -> Result<(), BadValue> {
        match self {
            Self::Flag(set) => set(config, value.as_bool().ok_or(BadValue)?),
            Self::Number(range, set) => set(config, within(whole(value)?, range)?),
            Self::Limit(range, set) => {
                let number = unless_none(value, |it| within(whole(it)?, range));
                set(config, number?);
            }
            Self::Decimal(range, set) => {
                let number = value.as_f64().ok_or(BadValue)?;
                set(config, within(number, range)?);
            }
            Self::Size(range, set) => set(config, within(size(value)?, range)?),
            Self::SizeLimit(least, set) => {
                let bytes = unless_none(value, |it| within(size(it)?, &(*least..=u64::MAX)));
                set(config, bytes?);
            }
            Self::Choice(of, set) => {
                let given = text(value)?;
                let chosen = of.iter().find(|one| **one == given);
                set(config, chosen.ok_or(BadValue)?);
            }
            Self::Text(set) => set(config, text(value)?.to_owned()),
            Self::Checked { check, set, .. } => {
                let given = Some(text(value)?).filter(|given| check(given));
                set(config, given.ok_or(BadValue)?);
            }
            Self::Url(set) => set(config, url(text(value)?)?),
            Self::Path(set) => set(config, path(text(value)?, home)?),
            Self::Paths(set) => set(config, paths(value)?),
            Self::Words(set) => set(config, words(value)?),
            Self::Rules(set) => {
                let rules = words(value)?;
                let all = rules.iter().all(|it| it.parse::<Pattern>().is_ok());
                set(config, rules);
                all.then_some(()).ok_or(BadValue)?;
            }
            Self::Hosts(set) => {
                let read: Vec<_> = words(value)?.iter().map(|it| it.parse()).collect();
                let all = read.iter().all(Result::is_ok);
                set(config, read.into_iter().flatten().collect());
                all.then_some(()).ok_or(BadValue)?;
            }
            Self::Variables(set) => set(config, variables(value)?),
            Self::Argv(set) => {
                let argv = Some(words(value)?).filter(|argv| !argv.is_empty());
                set(config, argv.ok_or(BadValue)?);
            }
            Self::Pairs(set) => set(config, pairs(value)?),
            Self::Object(set) => set(config, Value::Object(object(value)?)),
            Self::Prices(set) => set(config, prices(value)?),
            Self::Tables { read, .. } => read(config, value, home)?,
        }
        Ok(())
    }

    /// Parses a text from the environment. A list is separated by commas or written as JSON. A table is written as JSON.
    pub(super) fn read(&self, text: &str) -> Result<Value, BadValue> {
        let text = text.trim();
        let json = || serde_json::from_str(text).map_err(|_| BadValue);
        Ok(match self {
            Self::Flag(_) => match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Value::Bool(true),
                "false" | "0" | "no" | "off" => Value::Bool(false),
                _ => return Err(BadValue),
            },
            Self::Number(..) | Self::Decimal(..) => json()?,
            Self::Limit(..) if text != "none" => json()?,
            Self::Pairs(_) | Self::Object(_) | Self::Prices(_) | Self::Tables { .. } => json()?,
            Self::Paths(_)
            | Self::Words(_)
            | Self::Rules(_)
            | Self::Hosts(_)
            | Self::Variables(_)
            | Self::Argv(_)
                if text.starts_with('[') =>
            {
                json()?
            }
            Self::Paths(_)
            | Self::Words(_)
            | Self::Rules(_)
            | Self::Hosts(_)
            | Self::Variables(_) => split(text.split(',')),
            Self::Argv(_) => split(text.split_whitespace()),
            _ => Value::from(text),
        })
    }
}

fn split<'a>(parts: impl Iterator<Item = &'a str>) -> Value {
    parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

/// Applies `read` to a value. Returns `None` if the value is the text `none`.
fn unless_none(
    value: &Value,
    read: impl FnOnce(&Value) -> Result<u64, BadValue>,
) -> Result<Option<u64>, BadValue> {
    (value != "none").then(|| read(value)).transpose()
}

fn ends<T: Display>(range: &RangeInclusive<T>) -> String {
    format!("from {} to {}", range.start(), range.end())
}

fn within<T: PartialOrd>(value: T, range: &RangeInclusive<T>) -> Result<T, BadValue> {
    let is_in = range.contains(&value);
    is_in.then_some(value).ok_or(BadValue)
}

/// Returns a value as a whole number. Lua may send `600` as `600.0`.
fn whole(value: &Value) -> Result<u64, BadValue> {
    let exact = |number: f64| {
        let whole = number.fract() == 0.0 && (0.0..9e15).contains(&number);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and in range, as just checked"
        )]
        whole.then_some(number as u64)
    };
    value
        .as_u64()
        .or_else(|| value.as_f64().and_then(exact))
        .ok_or(BadValue)
}

fn text(value: &Value) -> Result<&str, BadValue> {
    value
        .as_str()
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .ok_or(BadValue)
}

fn url(text: &str) -> Result<String, BadValue> {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !text.contains(char::is_whitespace) => {
            Ok(text.to_owned())
        }
        _ => Err(BadValue),
    }
}

fn path(text: &str, home: Option<&Path>) -> Result<PathBuf, BadValue> {
    let path = match text.strip_prefix("~/") {
        Some(rest) => home.ok_or(BadValue)?.join(rest),
        None => PathBuf::from(text),
    };
    path.is_absolute().then_some(path).ok_or(BadValue)
}

fn paths(value: &Value) -> Result<Vec<PathBuf>, BadValue> {
    let list = words(value)?;
    let is_path = |text: &String| text.starts_with('/') || text.starts_with("~/");
    let all = list.iter().all(is_path);
    all.then(|| list.iter().map(PathBuf::from).collect())
        .ok_or(BadValue)
}

pub(super) fn words(value: &Value) -> Result<Vec<String>, BadValue> {
    // Lua cannot tell an empty list from an empty table.
    if value.as_object().is_some_and(serde_json::Map::is_empty) {
        return Ok(Vec::new());
    }
    let list = value.as_array().ok_or(BadValue)?;
    list.iter()
        .map(|word| text(word).map(str::to_owned))
        .collect()
}

fn variables(value: &Value) -> Result<Vec<String>, BadValue> {
    let list = words(value)?;
    let all = list.iter().all(|name| names_variables(name));
    all.then_some(list).ok_or(BadValue)
}

pub(super) fn object(value: &Value) -> Result<serde_json::Map<String, Value>, BadValue> {
    match value {
        Value::Object(map) => Ok(map.clone()),
        Value::Array(list) if list.is_empty() => Ok(serde_json::Map::new()),
        _ => Err(BadValue),
    }
}

fn pairs(value: &Value) -> Result<Vec<(String, String)>, BadValue> {
    object(value)?
        .into_iter()
        .map(|(name, value)| Ok((name, value.as_str().ok_or(BadValue)?.to_owned())))
        .collect()
}

fn prices(value: &Value) -> Result<Prices, BadValue> {
    let price = |(model, value): (String, Value)| {
        let price = serde_json::from_value(value).map_err(|_| BadValue)?;
        Ok((model, price))
    };
    let all: Result<_, BadValue> = object(value)?.into_iter().map(price).collect();
    all.map(Prices)
}

/// Returns the number of bytes in a value such as `4096`, `64k`, `64MiB` (powers of 1024) or `64MB` (powers of 1000).
fn size(value: &Value) -> Result<u64, BadValue> {
    if let Ok(bytes) = whole(value) {
        return Ok(bytes);
    }
    let text = text(value)?;
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| BadValue)?;
    let unit = text[digits..].trim_start().to_ascii_lowercase();
    let (power, base) = match unit.as_str() {
        "" | "b" => (0, 1024_u64),
        "k" | "kib" => (1, 1024),
        "m" | "mib" => (2, 1024),
        "g" | "gib" => (3, 1024),
        "t" | "tib" => (4, 1024),
        "kb" => (1, 1000),
        "mb" => (2, 1000),
        "gb" => (3, 1000),
        "tb" => (4, 1000),
        _ => return Err(BadValue),
    };
    number.checked_mul(base.pow(power)).ok_or(BadValue)
}

/// Returns a size in the notation of settings, such as `64KiB`.
fn size_text(bytes: u64) -> String {
    let text = co_text::size_text(bytes);
    text.trim_end_matches(" bytes").replace(' ', "")
}
