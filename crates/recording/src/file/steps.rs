//! The one way in which a recording is written. Its writes, in the order in which they are made, are the protocol that
//! a follower relies on. A test sees them here, as they are made (`protocol`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Writes all of `bytes` at `offset`. What it has returned from is seen by every read that begins later.
pub(super) fn write(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)?;
    #[cfg(test)]
    seen::note(file, bytes, offset);
    Ok(())
}

#[cfg(test)]
pub(super) mod seen {
    use std::cell::RefCell;
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;

    /// One write.
    pub(crate) struct Step {
        /// The file's number.
        pub(crate) file: u64,
        pub(crate) offset: usize,
        pub(crate) bytes: Vec<u8>,
    }

    thread_local! {
        static STEPS: RefCell<Option<Vec<Step>>> = const { RefCell::new(None) };
    }

    pub(super) fn note(file: &File, bytes: &[u8], offset: u64) {
        STEPS.with_borrow_mut(|steps| {
            if let Some(steps) = steps {
                steps.push(Step {
                    file: file.metadata().expect("an open file").ino(),
                    offset: usize::try_from(offset).expect("a small file"),
                    bytes: bytes.to_vec(),
                });
            }
        });
    }

    /// The writes that `body` makes in this thread, in their order.
    pub(crate) fn collect(body: impl FnOnce()) -> Vec<Step> {
        STEPS.set(Some(Vec::new()));
        body();
        STEPS.take().unwrap_or_default()
    }
}
