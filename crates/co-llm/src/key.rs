//! Finds the person's key in a variable, in a private file, or in the output of a program.
//!
//! A key is never logged, shown or put into an error. Redaction knows each key that co can send, see [`source::sources`].

mod known;
mod source;

use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Mutex;

pub(super) use self::known::known;
use self::source::{KeySource, from_command, in_words, sources};
use crate::choice::Choice;
use crate::fault::Fault;
use crate::settings::ProviderSettings;

/// The key of one provider.
#[derive(Debug)]
pub(super) struct Key {
    /// The place that provides the key. It is `None` if no key was found. Some servers need no key.
    source: Option<KeySource>,
    /// The environment variable to set if there is no key. It is `None` if this server has no usual variable; then the setting
    /// `api_key_env` must name one.
    variable: Option<String>,
    /// The key to send. If a program prints the key, the program runs before the first request, and again after a server refused
    /// the key.
    current: Mutex<Option<SecretString>>,
    /// Every key that was used so far, for redaction.
    used: parking_lot::Mutex<Vec<SecretString>>,
}

impl Key {
    /// Finds the key, or the program that prints the key. Fails if there is no key for a provider's own server that needs one.
    pub(super) fn find(
        choice: &Choice,
        settings: &ProviderSettings,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Fault> {
        // A key in the environment is for its vendor. Only a setting sends it elsewhere.
        let usual = choice.provider.key_variable.filter(|_| choice.own);
        let own = settings.key_env.as_deref();
        let variable = own.or(usual).map(str::to_owned);
        let mut source = sources(settings, usual).into_iter().next();
        let key = match &source {
            Some(source) => source.read(env)?,
            None => None,
        };
        if let (Some(KeySource::Variable(_)), None) = (&source, &key) {
            if own.is_some() || choice.own {
                return Err(Fault::NoKey {
                    provider: choice.title.clone(),
                    variable,
                });
            }
            source = None;
        }
        let found = Self {
            source,
            variable,
            current: Mutex::new(None),
            used: parking_lot::Mutex::default(),
        };
        if let (Some(key), Ok(mut current)) = (key, found.current.try_lock()) {
            *current = Some(found.remember(key));
        }
        Ok(found)
    }

    /// Returns the key. Runs the program that prints the key, unless the key is known.
    pub(super) async fn get(&self) -> Result<Option<SecretString>, Fault> {
        let mut current = self.current.lock().await;
        if let (Some(KeySource::Command(argv)), None) = (&self.source, &*current) {
            *current = Some(self.remember(from_command(argv).await?));
        }
        Ok(current.clone())
    }

    /// Adds a key to the list of used keys, which redaction reads.
    fn remember(&self, key: SecretString) -> SecretString {
        let mut used = self.used.lock();
        if !used
            .iter()
            .any(|old| old.expose_secret() == key.expose_secret())
        {
            used.push(key.clone());
        }
        key
    }

    /// Drops a key that a server refused. If a program printed the key, the program runs again for the next request.
    pub(super) fn refused(&self) {
        if let Some(KeySource::Command(_)) = &self.source
            // If it is locked, the program runs already.
            && let Ok(mut current) = self.current.try_lock()
        {
            *current = None;
        }
    }

    /// Returns the variable, file or program that provides the key, or `None` if there is no key.
    pub(super) fn source_name(&self) -> Option<String> {
        match self.source.as_ref()? {
            KeySource::Variable(name) => Some(name.clone()),
            KeySource::File(path) => Some(path.display().to_string()),
            KeySource::Command(argv) => argv.first().cloned(),
        }
    }

    /// Returns the environment variable to set if there is no key. It is `None` if this server has no usual variable; then the
    /// setting `api_key_env` must name one.
    pub(super) fn variable(&self) -> Option<String> {
        self.variable.clone()
    }

    /// Returns the place where the person can correct the key: the variable, the file or the whole command. Returns `None` if
    /// there is no key.
    pub(super) fn place(&self) -> Option<String> {
        match &self.source {
            Some(KeySource::Command(argv)) => Some(in_words(argv)),
            _ => self.source_name(),
        }
    }

    /// Returns every key that was used so far, including keys that a server refused.
    pub(super) fn used(&self) -> Vec<String> {
        let used = self.used.lock();
        let keys = used.iter().map(|key| key.expose_secret().to_owned());
        keys.collect()
    }
}

#[cfg(test)]
mod tests;
