//! Where records of real GPUs come from: the scenario runner, traced programs, and what is seen of them from outside.

pub mod attach;
mod clock;
pub mod counters;
mod ending;
mod hardware;
pub mod job;
mod looking;
pub mod machine;
mod nvml;
mod private;
pub mod python;
mod rights;
pub mod runner;

pub use private::cache_folder;

/// Does the same with all, each on a thread of its own.
fn at_once<T: Send, R: Send>(
    all: impl IntoIterator<Item = T>,
    act: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let act = &act;
    std::thread::scope(|scope| {
        let threads = all.into_iter().map(|it| scope.spawn(move || act(it)));
        let threads: Vec<_> = threads.collect();
        threads
            .into_iter()
            .filter_map(|it| it.join().ok())
            .collect()
    })
}
