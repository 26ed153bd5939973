//! What collectives do, by the words of PyTorch and NCCL.

/// What a collective does, as far as it matters for who waits for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Barrier,
    /// One rank sends, the others receive.
    Broadcast,
    /// One rank receives what the others send.
    Reduce,
    /// A rank sends to another, or receives, and who that is is known.
    Pair,
    /// The same without that.
    PointToPoint,
    /// Something else, or several at once.
    Other,
}

impl Operation {
    /// By a word of PyTorch's or NCCL's; [`Operation::Other`] for what names none.
    pub fn of(name: &str) -> Operation {
        let plain = name.chars().filter(char::is_ascii_alphanumeric);
        let plain: String = plain.map(|c| c.to_ascii_lowercase()).collect();
        // In this order: "reduce" is part of others' names.
        const WORDS: [(&str, Operation); 14] = [
            ("allreduce", Operation::AllReduce),
            ("allgather", Operation::AllGather),
            ("reducescatter", Operation::ReduceScatter),
            ("alltoall", Operation::AllToAll),
            ("barrier", Operation::Barrier),
            ("broadcast", Operation::Broadcast),
            ("sendrecv", Operation::PointToPoint),
            ("send", Operation::PointToPoint),
            ("recv", Operation::PointToPoint),
            ("scatter", Operation::Broadcast),
            ("gather", Operation::Reduce),
            ("reduce", Operation::Reduce),
            ("coalesced", Operation::Other),
            ("generic", Operation::Other),
        ];
        let found = WORDS.iter().find(|(word, _)| plain.contains(word));
        found.map_or(Operation::Other, |&(_, operation)| operation)
    }

    /// Whether it cannot end on any rank before it has begun on all. Only then the shortest of its kernels is the
    /// transfer, and the ends of all lie together.
    pub fn is_mutual(self) -> bool {
        matches!(
            self,
            Operation::AllReduce
                | Operation::AllGather
                | Operation::ReduceScatter
                | Operation::AllToAll
                | Operation::Barrier
        )
    }

    /// Whether all ranks take part in one order, and some may leave before others have come.
    pub fn is_one_way(self) -> bool {
        matches!(
            self,
            Operation::Broadcast | Operation::Reduce | Operation::Pair
        )
    }

    /// Its name in figures.
    pub fn label(self) -> &'static str {
        match self {
            Operation::AllReduce => "all-reduce",
            Operation::AllGather => "all-gather",
            Operation::ReduceScatter => "reduce-scatter",
            Operation::AllToAll => "all-to-all",
            Operation::Barrier => "barrier",
            Operation::Broadcast => "broadcast",
            Operation::Reduce => "reduce",
            Operation::Pair | Operation::PointToPoint => "send/receive",
            Operation::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names as NCCL 2.18 to 2.28, PyTorch's record_param_comms and RCCL have them.
    #[test]
    fn operations_are_told_by_their_names() {
        let expected = [
            (
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                Operation::AllReduce,
            ),
            (
                "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
                Operation::AllReduce,
            ),
            (
                "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL",
                Operation::ReduceScatter,
            ),
            ("ncclDevKernel_Reduce_Sum_f32_RING_LL", Operation::Reduce),
            ("ncclDevKernel_AllGather_RING_LL", Operation::AllGather),
            ("ncclDevKernel_Broadcast_RING_LL", Operation::Broadcast),
            ("ncclDevKernel_SendRecv", Operation::PointToPoint),
            ("ncclDevKernel_Generic", Operation::Other),
            ("allreduce_coalesced", Operation::AllReduce),
            ("_allgather_base", Operation::AllGather),
            ("_reduce_scatter_base", Operation::ReduceScatter),
            ("all_to_allv", Operation::AllToAll),
            ("gather", Operation::Reduce),
            ("scatter", Operation::Broadcast),
        ];
        for (name, operation) in expected {
            assert_eq!(Operation::of(name), operation, "{name}");
        }
    }
}
