//! Whether a bench only has to show that it works: `cargo test --benches` runs each once, without measuring, and then small
//! sizes do.

/// Operations of the largest timeline then.
const LARGEST: usize = 10_000;

/// Whether nothing is measured, by criterion's own rule.
pub(crate) fn is_quick() -> bool {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    has("--test") || !has("--bench")
}

/// Those of `sizes` that are to be tried, ascending; at least the first.
pub(crate) fn sizes<const N: usize>(sizes: [usize; N]) -> impl Iterator<Item = usize> {
    let is_quick = is_quick();
    let tried = move |&(at, size): &(usize, usize)| at == 0 || !is_quick || size <= LARGEST;
    let least = move |(_, size): (usize, usize)| if is_quick { size.min(LARGEST) } else { size };
    sizes.into_iter().enumerate().filter(tried).map(least)
}
