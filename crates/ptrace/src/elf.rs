//! Functions of the libraries that a process has loaded, found in its memory. What lies on disk may be another file by now, or lie
//! in another mount namespace.

use std::io;
use std::ops::Range;

use crate::memory::Memory;

/// A loaded library: its symbols, as its dynamic section tells them.
pub(crate) struct Library {
    bias: u64,
    strings: u64,
    symbols: u64,
    hashes: u64,
}

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
/// More program headers, dynamic entries or symbols of one hash no library has.
const MOST: u64 = 4096;

impl Library {
    /// Reads the library whose file begins at `base`.
    pub(crate) fn read(memory: &Memory, base: u64) -> io::Result<Library> {
        let bad = || io::Error::new(io::ErrorKind::InvalidData, "it is no ELF library");
        if memory.number::<4>(base)? != u64::from(u32::from_le_bytes(*b"\x7fELF")) {
            return Err(bad());
        }
        let headers = base + memory.number::<8>(base + 32)?;
        let count = memory.number::<2>(base + 56)?;
        let (mut first, mut dynamic) = (None, None);
        for header in (0..count).map(|i| headers + 56 * i) {
            let address = memory.number::<8>(header + 16)?;
            match memory.number::<4>(header)? {
                PT_LOAD if first.is_none() => first = Some(address & !0xfff),
                PT_DYNAMIC => dynamic = Some(address),
                _ => {}
            }
        }
        let bias = base.wrapping_sub(first.unwrap_or(0));
        let dynamic = bias.wrapping_add(dynamic.ok_or_else(bad)?);
        let mut found = [0; 3];
        for entry in (0..MOST).map(|i| dynamic + 16 * i) {
            let place = match memory.number::<8>(entry)? {
                0 => break,
                DT_STRTAB => 0,
                DT_SYMTAB => 1,
                DT_GNU_HASH => 2,
                _ => continue,
            };
            let value = memory.number::<8>(entry + 8)?;
            // The loader has added the bias to those of most libraries, not to its own.
            found[place] = if value < bias { value + bias } else { value };
        }
        if found.contains(&0) {
            return Err(bad());
        }
        let [strings, symbols, hashes] = found;
        Ok(Library {
            bias,
            strings,
            symbols,
            hashes,
        })
    }

    /// Where a function or variable lies; nothing where the library defines none of that name.
    pub(crate) fn symbol(&self, memory: &Memory, name: &str) -> io::Result<Option<Range<u64>>> {
        let buckets = memory.number::<4>(self.hashes)?;
        let offset = memory.number::<4>(self.hashes + 4)?;
        let blooms = memory.number::<4>(self.hashes + 8)?;
        if buckets == 0 {
            return Ok(None);
        }
        let table = self.hashes + 16 + 8 * blooms;
        let chain = table + 4 * buckets;
        let wanted = hash(name);
        let first = memory.number::<4>(table + 4 * (u64::from(wanted) % buckets))?;
        for index in first..first.saturating_add(MOST) {
            if index < offset {
                return Ok(None);
            }
            let found = memory.number::<4>(chain + 4 * (index - offset))?;
            if found | 1 == u64::from(wanted) | 1 {
                let symbol = self.symbols + 24 * index;
                let text = self.strings + memory.number::<4>(symbol)?;
                let is_defined = memory.number::<2>(symbol + 6)? != 0;
                // What an indirect function is must be asked of the function itself.
                let is_plain = memory.number::<1>(symbol + 4)? & 0xf != 10;
                let bytes = memory.bytes(text, name.len() + 1)?;
                if is_defined && is_plain && bytes.strip_suffix(&[0]) == Some(name.as_bytes()) {
                    let at = self.bias.wrapping_add(memory.number::<8>(symbol + 8)?);
                    return Ok(Some(at..at + memory.number::<8>(symbol + 16)?));
                }
            }
            if found & 1 == 1 {
                return Ok(None);
            }
        }
        Ok(None)
    }
}

fn hash(name: &str) -> u32 {
    name.bytes().fold(5381, |hash: u32, byte| {
        hash.wrapping_mul(33).wrapping_add(u32::from(byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::maps;

    #[test]
    fn functions_of_this_process_are_found_where_they_are() {
        let own = std::process::id();
        let memory = Memory::open(own).expect("its own");
        let maps = maps(own).expect("its own");
        let libc = maps.iter().find(|it| it.is_libc()).expect("it has one");
        let library = Library::read(&memory, libc.range.start).expect("a library");
        let at = |name| library.symbol(&memory, name).expect("readable");
        let getpid = at("getpid").expect("libc has it");
        assert_eq!(getpid.start, libc::getpid as *const () as u64);
        let malloc = at("malloc").expect("libc has it");
        assert!(malloc.end > malloc.start);
        assert_eq!(at("no_such_function"), None);
        // It has no libc's header at its second page.
        assert!(Library::read(&memory, libc.range.start + 0x1000).is_err());
    }
}
