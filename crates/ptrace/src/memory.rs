//! Another process's memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::steps;

/// The memory of a process as it was when this was opened: after an `exec` there is nothing more to be had.
#[derive(Debug)]
pub(crate) struct Memory(File);

impl Memory {
    pub(crate) fn open(pid: u32) -> io::Result<Memory> {
        let file = File::options()
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/mem"))?;
        Ok(Memory(file))
    }

    pub(crate) fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(into, at)
    }

    pub(crate) fn bytes(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.read(at, &mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn number<const N: usize>(&self, at: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read(at, &mut bytes[..N])?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        steps::note();
        self.0.write_all_at(bytes, at)
    }
}
