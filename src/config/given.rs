//! The values that the layers give to settings, and the difference to values that are read later.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::setting::Setting;
use super::table::settings;
use super::{Applies, Config};

/// The values of the settings that some layer gives, each in the form of its kind.
///
/// [`GivenSettings::config`] makes the typed settings of them. Unlike typed settings, two can be merged by setting.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GivenSettings {
    /// A strict setting may have a wrong value.
    values: BTreeMap<&'static str, Value>,
    /// A layer that could not be read.
    pub(super) unread: Option<String>,
    /// For paths that start with `~/`.
    home: Option<PathBuf>,
}

impl GivenSettings {
    pub(super) fn new(home: Option<PathBuf>) -> Self {
        Self {
            values: BTreeMap::new(),
            unread: None,
            home,
        }
    }

    /// Replaces an earlier value, unless the new one is wrong and the setting is not strict.
    pub(super) fn put(
        &mut self,
        setting: &Setting,
        value: Value,
    ) -> Result<(), super::value::BadValue> {
        let home = self.home.as_deref();
        let took = setting.kind.take(&mut Config::default(), &value, home);
        if took.is_ok() || setting.strict {
            self.values.insert(setting.name, value);
        }
        took
    }

    /// Returns the typed settings; a setting without a value has its default.
    pub fn config(&self) -> Config {
        let mut config = Config {
            wrong: self.unread.clone(),
            ..Config::default()
        };
        for setting in settings() {
            self.apply(setting, &mut config);
        }
        config
    }

    /// Returns these values, with those of `new` for the settings that apply `when`.
    #[must_use]
    pub fn with(&self, new: &Self, when: Applies) -> Self {
        let source = |setting: &Setting| if setting.applies == when { new } else { self };
        let value = |setting: &Setting| {
            let value = source(setting).values.get(setting.name)?;
            Some((setting.name, value.clone()))
        };
        Self {
            values: settings().filter_map(value).collect(),
            unread: new.unread.clone(),
            home: self.home.clone(),
        }
    }

    /// Returns the names of the settings that apply `when` and mean something else in `new`.
    pub fn changed(&self, new: &Self, when: Applies) -> Vec<&'static str> {
        let differs = |setting: &&Setting| self.alone(setting) != new.alone(setting);
        let settings = settings().filter(|setting| setting.applies == when);
        settings
            .filter(differs)
            .map(|setting| setting.name)
            .collect()
    }

    /// Returns the defaults with the value of one setting.
    fn alone(&self, setting: &Setting) -> Config {
        let mut config = Config::default();
        self.apply(setting, &mut config);
        config
    }

    fn apply(&self, setting: &Setting, config: &mut Config) {
        if let Some(value) = self.values.get(setting.name) {
            let took = setting.kind.take(config, value, self.home.as_deref());
            if took.is_err() {
                config.wrong = Some(format!("the setting {}", setting.name));
            }
        }
    }
}

#[cfg(test)]
mod tests;
