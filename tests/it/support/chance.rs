//! Numbers that look random and follow from a seed.

/// Splitmix64.
pub(crate) struct Chance {
    pub(crate) seed: u64,
    state: u64,
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    /// Takes the seed from `CO_TEST_SEED`, else from `seed`.
    pub(crate) fn from_environment(seed: impl FnOnce() -> u64) -> Self {
        let given = std::env::var("CO_TEST_SEED").ok();
        Self::new(given.map_or_else(seed, |given| given.parse().unwrap()))
    }

    /// Returns a number from 0 to before `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    /// Returns one of the choices.
    pub(crate) fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        let index = self.below(choices.len() as u64);
        choices[usize::try_from(index).unwrap()]
    }
}

impl Drop for Chance {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed was {}", self.seed);
        }
    }
}
