//! Which kernels are communication, by their names: one table for figures, verdicts, findings and ranks.
//!
//! Communication exchanges data with other GPUs and waits for them: it is no compute, and takes few SMs on purpose. Kernels that
//! may be paired are launched in one order on all ranks of a communicator.

/// Words of names in lower case, and whether what has one of them may be paired between ranks.
const ROWS: [(&str, bool); 5] = [
    // NCCL, and RCCL, which took its names over.
    ("nccldevkernel ncclkernel", true),
    // Two shots meet between them: on four GPUs of one host their ends lay within 1.1 us of each other, 99 of 100 times.
    ("all_reduce_two_shot two_shot_all_reduce", true),
    // Other kernels of theirs: copies of symmetric memory, set-up.
    ("nccl rccl nvshmem", false),
    // One-shot kernels of vLLM, SGLang, TensorRT-LLM, FlashInfer, mscclpp and PyTorch's symmetric memory. They read what others wrote
    // and leave, so that ends do not lie together.
    (
        "allreduce all_reduce allgather all_gather reducescatter reduce_scatter multimem cross_device_reduce",
        false,
    ),
    // Dispatch and combine of experts: by namespace, as a local permutation is called dispatch, too.
    (
        "alltoall all_to_all a2a_dispatch a2a_combine deep_ep:: internode:: intranode:: internode_ll:: notify_dispatch cached_notify pplx::",
        false,
    ),
];

/// Whether a name in lower case has one of these words, which blanks part.
pub fn has_any(name: &str, words: &str) -> bool {
    words.split(' ').any(|word| name.contains(word))
}

/// The first row that a name has a word of.
fn row(name: &str) -> Option<&'static (&'static str, bool)> {
    let name = name.to_ascii_lowercase();
    ROWS.iter().find(|(words, _)| has_any(&name, words))
}

/// Whether an operator of PyTorch packs tensors for one collective, or unpacks them.
pub fn packs(name: &str) -> bool {
    name.starts_with("aten::") && name.ends_with("flatten_dense_tensors")
}

/// Whether a kernel is communication between GPUs.
pub fn is_communication(name: &str) -> bool {
    row(name).is_some()
}

/// Whether kernels of this name on several ranks may be parts of one collective.
pub fn may_be_paired(name: &str) -> bool {
    row(name).is_some_and(|row| row.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names as the libraries give them, and of local kernels that sound alike.
    #[test]
    fn names_tell_communication_and_what_may_be_paired() {
        for (name, expected) in [
            (
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                (true, true),
            ),
            (
                "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
                (true, true),
            ),
            (
                "void sglang::cross_device_reduce_2stage<__nv_bfloat16, 8>(…)",
                (true, false),
            ),
            ("void multimem_all_reduce_kernel<…>(…)", (true, false)),
            ("void all_reduce_two_shot_kernel<…>(…)", (true, true)),
            ("void one_shot_all_reduce_kernel<…>(…)", (true, false)),
            (
                "void deep_ep::intranode::combine<__nv_bfloat16, 4, 768>(…)",
                (true, false),
            ),
            (
                "void internode_ll::dispatch<true, 3, 10, 7168>(…)",
                (true, false),
            ),
            ("notify_dispatch", (true, false)),
            (
                "void moe::permute::dispatch<__nv_bfloat16>(…)",
                (false, false),
            ),
            ("combine", (false, false)),
            ("void reduce_kernel<512, 1>()", (false, false)),
        ] {
            assert_eq!(
                (is_communication(name), may_be_paired(name)),
                expected,
                "{name}"
            );
        }
    }
}
