//! What to do about work of the CPU that the GPU waits for.

/// What to do, how that is called where it is the cure, and the change of the source.
pub type Cure = (&'static str, &'static str, &'static str);

macro_rules! cures {
    ($($name:ident $advice:expr, $cure:expr, $change:literal;)*) => {
        $(#[allow(missing_docs)] pub const $name: Cure = ($advice, $cure, $change);)*
    };
}

cures! {
    TRACED "A stack is taken for each operation, as anomaly detection does: that is for debugging.", "switching that off", "anomaly";
    WORKERS "Its workers are too slow: use more of them (num_workers), let them load further ahead (prefetch_factor), or do less in them.", "", "workers";
    INPUT "tf.data brings batches too slowly: map on more threads (num_parallel_calls), load ahead (prefetch), and keep what stays the same (cache).", "loading ahead with tf.data", "workers";
    BUFFERS "DistributedDataParallel sends the model's buffers (BatchNorm's statistics) to all ranks before each forward. Where ranks may differ in them, leave that out.", "", "buffers";
    KEPT KEEP_WORKERS, "keeping the DataLoader's workers", "keep-workers";
    LOADS "Prepare the next batch before the GPU needs it, in another thread or process.", "", "workers";
    ALONE "The DataLoader has no workers: this process loads each batch, while the GPU waits. Give it some (num_workers).", "loading in DataLoader workers", "workers";
    GIL "Python lets one thread at a time compute, and another one in after 5 ms: each launch waits for that. Let that thread's work be done by a process (multiprocessing).", "a process for that thread", "";
    AWAITED "It waits there while the GPU works, too: for results, or for a thread that copies data to the GPU. Where it sleeps, wait by a call; keep what is copied each time on the GPU.", "waiting less there", "";
    MANAGED "The program has managed memory: what the CPU touches of it moves page by page. Prefetch it (cudaMemPrefetchAsync), or copy from pinned memory to the device's own.", "cutting CPU work", "prefetch";
    FETCHED "It works on what comes back from the GPU: launch the next step before that, or do that work there.", "cutting CPU work", "keep-work";
    MADE "It is made on the CPU there, and copied: make it on the GPU (device=), and once where it stays the same.", "making it on the GPU", "made";
    NATIVE "Make that function faster, or let it work beside the GPU, in another thread.", "cutting CPU work", "";
    BLOCKED "There it waits for files, memory or other threads: do that less often, in larger pieces, or in another thread.", "waiting less there", "";
    OUTPUT "It writes a file while the GPU waits: let another thread write, write less often, or leave out what waits for the disk (fsync).", "writing beside the GPU's work", "output";
    OTHERS "There it waits for other threads or processes: see what those do, and have them begin earlier.", "waiting less for others", "";
    LOADERS "There it waits for other processes, in PyTorch mostly a DataLoader's: more workers, kept alive (persistent_workers), that load further ahead.", MORE_WORKERS, "workers";
    MPI "Processes exchange data through memory of the host, and the GPU waits for it. Hand device memory to a CUDA-aware MPI, and exchange the border while the GPU works on the inner part (MPI_Isend).", "overlapping communication", "";
    DECODER "These frames come from the GPU's video decoder, which leaves no record: there the CPU waits for it. Decode several streams at once, or fewer frames.", "decoding several streams at once", "";
    OTHER "Look at what the CPU does there: do less of it, do it earlier, or in another thread.", "cutting CPU work", "";
    SEARCHES "cuDNN tries all its algorithms for each new size (torch.backends.cudnn.benchmark): switch that off, or bring inputs to one or a few sizes.", "not trying algorithms anew", "benchmark";
    POOLED "Results of a multiprocessing pool are pickled and come through one pipe: write them into shared memory, send fewer bytes, or use a DataLoader.", "sharing memory with the pool", "pool-results";
    COMPILES "It is compiled anew again and again. Jit a function once, outside of the step. Keep sizes the same, and hand over as an ordinary argument what changes.", "compiling once", "anew";
}

/// The cure of workers that are too slow.
pub const MORE_WORKERS: &str = "using more DataLoader workers";
/// What to do where each epoch starts a DataLoader's workers.
pub const KEEP_WORKERS: &str = "Each epoch starts the DataLoader's workers anew and ends them: keep them (persistent_workers). More of them take longer to start.";
