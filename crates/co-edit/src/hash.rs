use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The number of bytes of the digest that a hash shows.
const DIGEST_BYTES: usize = 8;

/// Returns the hash of a text: the first 16 hexadecimal digits of its SHA-256.
///
/// The hash depends only on the lines, not on how a file stores them. So a file and its unmodified buffer in Neovim have the same
/// hash.
pub fn hash(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest[..DIGEST_BYTES]
        .iter()
        .fold(String::new(), |mut whole, byte| {
            // Writing to a string does not fail.
            let _written = write!(whole, "{byte:02x}");
            whole
        })
}
