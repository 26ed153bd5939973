//! What helps where PyTorch's operators wait for the GPU.

/// What helps where an operator needs a number from the GPU, by its name in a sentence.
pub fn operators_cure(named: &str) -> &'static str {
    let cures = [
        (
            "aten::_coalesce",
            " Coalesce the sparse matrix once, before the loop, or keep it in CSR.",
        ),
        (
            "aten::nonzero",
            " Its result, as that of x[mask], has a size that only the GPU knows: fixed sizes or torch.where(mask, a, b) need no sync.",
        ),
        (
            "unique",
            " Its result has a size that only the GPU knows: do it once for many, or on the CPU before.",
        ),
    ];
    let mut ops = named.split(' ').filter(|it| it.starts_with("aten::"));
    let op = ops.next().unwrap_or_default();
    let found = cures.iter().find(|it| op.contains(it.0));
    found.map_or("", |it| it.1)
}
