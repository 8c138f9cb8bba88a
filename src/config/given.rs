//! The values that the layers give to settings, and the comparison with values that are read later.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::setting::Setting;
use super::table::settings;
use super::{Applies, Config, WrongSettings};

/// The values that the layers give to settings, as JSON.
///
/// [`GivenSettings::config`] turns the values into typed settings. Two `GivenSettings` can be merged setting by setting; two
/// [`Config`]s cannot.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GivenSettings {
    /// The value of each setting, and the layer that gives it. Only the value of a strict setting can be wrong (see
    /// `Setting::strict`).
    values: BTreeMap<&'static str, (Value, SettingsLayer)>,
    /// The layer that is being read.
    pub(super) layer: SettingsLayer,
    /// The name of a layer that could not be read. It is `None` if all layers were read.
    pub(super) unread: Option<String>,
    /// The home directory, for paths that start with `~/`.
    home: Option<PathBuf>,
}

/// A layer of settings. A later variant replaces the values of earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SettingsLayer {
    #[default]
    File,
    Lua,
    Environment,
}

/// The settings that send a key or another credential to a server.
const CREDENTIALS: [&str; 4] = ["api_key_env", "api_key_file", "api_key_cmd", "headers"];

impl GivenSettings {
    pub(super) fn new(home: Option<PathBuf>) -> Self {
        Self {
            values: BTreeMap::new(),
            layer: SettingsLayer::default(),
            unread: None,
            home,
        }
    }

    /// Sets a value, which replaces an earlier value of the setting. Ignores a wrong value, unless the setting is strict (see
    /// `Setting::strict`).
    pub(super) fn put(
        &mut self,
        setting: &Setting,
        value: Value,
    ) -> Result<(), super::value::BadValue> {
        let home = self.home.as_deref();
        let took = setting.kind.take(&mut Config::default(), &value, home);
        if took.is_ok() || setting.strict {
            self.values.insert(setting.name, (value, self.layer));
        }
        took
    }

    /// Returns true if the value of a setting comes from the environment.
    pub fn is_from_environment(&self, name: &str) -> bool {
        self.layer_of(name) == Some(SettingsLayer::Environment)
    }

    /// Returns the layer of the value of a setting.
    pub(super) fn layer_of(&self, name: &str) -> Option<SettingsLayer> {
        self.values.get(name).map(|(_, layer)| *layer)
    }

    /// Returns a setting that chooses the server, and a credential from an earlier layer than this setting. Such a credential was
    /// not meant for this server. Returns `None` if there is no such pair.
    pub(super) fn misdirected(&self) -> Option<(&'static str, &'static str)> {
        let address = ["base_url", "provider"];
        let address = address
            .into_iter()
            .find(|name| self.values.contains_key(name))?;
        let layer = self.layer_of(address)?;
        let weaker = |name: &&str| self.layer_of(name).is_some_and(|given| given < layer);
        Some((address, CREDENTIALS.into_iter().find(weaker)?))
    }

    /// Returns the typed settings. A setting without a value has its default.
    pub fn config(&self) -> Config {
        let mut config = Config {
            wrong: self.unread.clone().map(|what| WrongSettings {
                what,
                confines: true,
            }),
            ..Config::default()
        };
        for setting in settings() {
            self.apply(setting, &mut config);
        }
        if let (Some((address, credential)), None) = (self.misdirected(), &config.wrong) {
            config.wrong = Some(WrongSettings {
                what: format!("the pair of {address} and {credential}"),
                confines: false,
            });
        }
        config
    }

    /// Returns a copy of these values. The settings that apply at the time `when` have the values in `new`.
    #[must_use]
    pub fn with(&self, new: &Self, when: Applies) -> Self {
        let source = |setting: &Setting| if setting.applies == when { new } else { self };
        let value = |setting: &Setting| {
            let value = source(setting).values.get(setting.name)?;
            Some((setting.name, value.clone()))
        };
        Self {
            values: settings().filter_map(value).collect(),
            layer: new.layer,
            unread: new.unread.clone(),
            home: self.home.clone(),
        }
    }

    /// Returns the names of the settings that apply at the time `when` and differ in meaning between `self` and `new`.
    pub fn changed(&self, new: &Self, when: Applies) -> Vec<&'static str> {
        let differs = |setting: &&Setting| self.alone(setting) != new.alone(setting);
        let settings = settings().filter(|setting| setting.applies == when);
        settings
            .filter(differs)
            .map(|setting| setting.name)
            .collect()
    }

    /// Returns the default settings, with the value of only this setting applied.
    fn alone(&self, setting: &Setting) -> Config {
        let mut config = Config::default();
        self.apply(setting, &mut config);
        config
    }

    fn apply(&self, setting: &Setting, config: &mut Config) {
        if let Some((value, _)) = self.values.get(setting.name) {
            let took = setting.kind.take(config, value, self.home.as_deref());
            let known = config.wrong.as_ref().is_some_and(|wrong| wrong.confines);
            if took.is_err() && !known {
                config.wrong = Some(WrongSettings {
                    what: format!("the setting {}", setting.name),
                    confines: setting.confines,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests;
