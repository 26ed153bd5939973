//! Calls of the operating system, by name.

/// Calls of the system that wait for other threads or processes.
const WAITS: &str = "poll ppoll select epoll_wait futex pthread_cond_wait pthread_cond_timedwait sem_wait sem_timedwait waitpid wait4";

/// Whether a call works on nothing: it waits for other threads or processes.
pub fn is_system_wait(name: &str) -> bool {
    WAITS.split(' ').any(|it| it == name)
}

/// Whether a call reads or writes a file, or opens one.
pub fn is_file_io(name: &str) -> bool {
    let name = name.trim_start_matches(['p', 'f']).trim_end_matches("64");
    matches!(
        name,
        "read" | "write" | "readv" | "writev" | "open" | "openat" | "sync" | "datasync"
    )
}

/// Whether a call brings something into a file, or waits for that.
pub fn is_file_output(name: &str) -> bool {
    let name = name
        .trim_start_matches(['p', 'f', '_'])
        .trim_end_matches("64");
    matches!(
        name,
        "write"
            | "writev"
            | "sync"
            | "datasync"
            | "flush"
            | "puts"
            | "printf"
            | "msync"
            | "sync_file_range"
    )
}
