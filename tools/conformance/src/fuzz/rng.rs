//! Numbers that look random and are the same for the same seed, on every machine.

use std::ops::Range;

/// SplitMix64.
#[derive(Clone, Debug)]
pub(super) struct Rng(u64);

impl Rng {
    /// The numbers of one case.
    pub(super) fn of_case(seed: u64, index: usize) -> Self {
        let mut rng = Self(seed ^ 0x9e37_79b9_7f4a_7c15);
        let mixed = rng.next().wrapping_add(index as u64);
        let mut rng = Self(mixed);
        rng.next();
        rng
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap_or(0)
    }

    pub(super) fn within(&mut self, range: Range<usize>) -> usize {
        range.start + self.below(range.end.saturating_sub(range.start))
    }

    /// Whether something happens that happens this often in a hundred.
    pub(super) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// The index of one of these weights, in proportion to them.
    pub(super) fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut at = self.below(weights.iter().sum());
        for (index, weight) in weights.iter().enumerate() {
            if at < *weight {
                return index;
            }
            at -= weight;
        }
        0
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }

    /// Some of these, in their order; at least one if there are any.
    pub(super) fn some<T: Clone>(&mut self, items: &[T]) -> Vec<T> {
        let mut chosen: Vec<T> = items.iter().filter(|_| self.percent(50)).cloned().collect();
        if let (true, false) = (chosen.is_empty(), items.is_empty()) {
            chosen.push(self.pick(items).clone());
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn a_case_depends_on_its_seed_and_index_only() {
        let numbers = |seed, index| {
            let mut rng = Rng::of_case(seed, index);
            [rng.next(), rng.next(), rng.next()]
        };
        assert_eq!(numbers(1, 2), numbers(1, 2));
        assert_ne!(numbers(1, 2), numbers(2, 1));
        assert_ne!(numbers(1, 2), numbers(1, 3));
    }

    #[test]
    fn choices_stay_within_bounds() {
        let mut rng = Rng::of_case(7, 0);
        for _ in 0..1000 {
            assert!((3..6).contains(&rng.within(3..6)));
            assert!(rng.weighted(&[0, 2, 0, 5]) % 2 == 1);
            assert!(!rng.some(&[1, 2, 3]).is_empty());
        }
    }
}
