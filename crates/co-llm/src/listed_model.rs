//! A model in a server's list of models.

/// One model of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListedModel {
    pub(crate) name: String,
    /// The size of the context window in tokens. It is `None` if the server does not report the size.
    pub(crate) window: Option<u64>,
    /// True if the model accepts images. It is `None` if the server does not report this.
    pub(crate) images: Option<bool>,
}

#[cfg(test)]
impl ListedModel {
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            window: None,
            images: None,
        }
    }
}
