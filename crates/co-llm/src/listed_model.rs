//! A model in the list of a server.

/// One model of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListedModel {
    pub(crate) name: String,
    /// The tokens that its context window holds, if the server says so.
    pub(crate) window: Option<u64>,
    /// True if the model takes images. None: the server does not say so.
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
