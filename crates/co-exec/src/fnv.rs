//! FNV-1a, 64 bits: a hash that stays the same between versions, which the standard hasher does not promise. It is
//! easy to meet, so it keeps nobody out.

/// The hash of texts, one after the other.
pub const fn hash(texts: &[&[u8]]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut text = 0;
    while text < texts.len() {
        let mut byte = 0;
        while byte < texts[text].len() {
            hash = (hash ^ texts[text][byte] as u64).wrapping_mul(0x0100_0000_01b3);
            byte += 1;
        }
        text += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_fnv_1a() {
        assert_eq!(hash(&[]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(&[b"a"]), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash(&[b"foo", b"", b"bar"]), 0x8594_4171_f739_67e8);
    }
}
