//! Native functions by address, as the libraries' own files name them.
//!
//! No stack is unwound. What lies above a thread's stack pointer holds return addresses: words that point behind a call in one of CUDA's,
//! NCCL's or PyTorch's libraries. They are of calls that are likely under way, as some are left from calls that are over.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::{Arc, Mutex};

use object::elf::{PT_LOAD, SHT_DYNSYM, STT_FUNC, STT_GNU_IFUNC, SectionHeader64, Sym64};
use object::read::elf::{FileHeader as _, SectionHeader as _};
use object::{LittleEndian, ReadCache, SectionIndex};

use crate::python::bounded::{is_bounded, sections};
use crate::rights::told;
use activity::door;

/// Libraries whose functions are looked for: their files begin so.
const KNOWN: [&str; 4] = ["libcuda.so", "libcudart", "libnccl", "libtorch"];
/// Functions of all libraries that are kept.
const FUNCTIONS_MAX: usize = 1 << 23;
/// How far up a stack is looked.
pub(super) const DEEPEST: usize = 64 * 1024;
/// Bytes before a return address that hold its call.
const CALL: u64 = 8;

/// A function of a file: where it begins and ends, and where its name does.
type Function = (u64, u64, u32);

/// The functions that a library's file names.
#[derive(Debug)]
struct Symbols {
    file: File,
    functions: Vec<Function>,
    /// Where names begin in the file.
    names: u64,
    /// Loaded parts: where in the file, how long, and at which address.
    loaded: Vec<(u64, u64, u64)>,
}

impl Symbols {
    /// Reads the file of a 64-bit library; nothing of one that is no such.
    fn read(file: File) -> Option<Symbols> {
        let cache = ReadCache::new(&file);
        let (head, sections) = sections(&cache)?;
        let is_table = |it: &&SectionHeader64<_>| it.sh_type.get(LittleEndian) == SHT_DYNSYM;
        // By hand: who asks for a file's symbols gets what belongs to them, too, of any size.
        let table = sections.iter().find(is_table).filter(is_bounded)?;
        let all: &[Sym64<LittleEndian>] = table.data_as_array(LittleEndian, &cache).ok()?;
        let names = SectionIndex(table.sh_link.get(LittleEndian) as usize);
        let names = sections.section(names).ok()?;
        let names = names.sh_offset.get(LittleEndian);
        let functions = all.iter().filter_map(|it| {
            let [start, length] = [it.st_value, it.st_size].map(|it| it.get(LittleEndian));
            let is_function = matches!(it.st_type(), STT_FUNC | STT_GNU_IFUNC);
            let end = start.saturating_add(length);
            (is_function && start != 0 && length != 0)
                .then(|| (start, end, it.st_name.get(LittleEndian)))
        });
        let mut functions: Vec<Function> = functions.collect();
        functions.sort_unstable();
        let programs = head.program_headers(LittleEndian, &cache).ok()?;
        let loaded = programs
            .iter()
            .filter(|it| it.p_type.get(LittleEndian) == PT_LOAD)
            .map(|it| [it.p_offset, it.p_filesz, it.p_vaddr].map(|it| it.get(LittleEndian)));
        let loaded = loaded.map(<(u64, u64, u64)>::from).collect();
        Some(Symbols {
            loaded,
            names,
            functions,
            file,
        })
    }

    /// The function at a place of the file.
    fn name(&self, offset: u64) -> Option<String> {
        let within = |it: &&(u64, u64, u64)| it.0 <= offset && offset - it.0 < it.1;
        let part = self.loaded.iter().find(within)?;
        let address = (offset - part.0).checked_add(part.2)?;
        let at = self.functions.partition_point(|it| it.0 <= address);
        let &(_, end, name) = self.functions.get(at.checked_sub(1)?)?;
        let mut text = [0; 256];
        let length = self
            .file
            .read_at(&mut text, self.names.checked_add(u64::from(name))?)
            .ok()?;
        let text = text[..length].split(|it| *it == 0).next()?;
        (address < end).then(|| plain(&String::from_utf8_lossy(text)))
    }
}

/// A function's name without what C++ adds to it: "c10d::ProcessGroupNCCL::allreduce". A name of C stays, but for the version of a
/// function for one stream a thread.
fn plain(name: &str) -> String {
    let nested = name.strip_prefix("_ZN");
    let mut rest = match nested.or_else(|| name.strip_prefix("_Z")) {
        Some(rest) => rest.trim_start_matches(['K', 'V', 'R', 'O']),
        None => {
            return name
                .trim_end_matches("_ptsz")
                .trim_end_matches("_ptds")
                .to_owned();
        }
    };
    let mut parts = Vec::new();
    while let Some(digits) = rest
        .find(|c: char| !c.is_ascii_digit())
        .filter(|it| *it > 0)
    {
        let length = rest[..digits].parse().unwrap_or(usize::MAX);
        let Some(part) = rest.get(digits..).and_then(|it| it.get(..length)) else {
            break;
        };
        parts.push(part);
        rest = &rest[digits + length..];
        if nested.is_none() {
            break;
        }
    }
    match parts.is_empty() {
        true => name.to_owned(),
        false => parts.join("::"),
    }
}

/// Libraries' functions, each file read once for all processes that have it.
#[derive(Debug, Default)]
pub(super) struct Libraries(Mutex<BTreeMap<FileId, Option<Arc<Symbols>>>>);

/// A file's device and inode.
type FileId = (u64, u64);

/// A library's code in a process.
struct Mapped {
    range: Range<u64>,
    offset: u64,
    is_cuda: bool,
    is_torch: bool,
    symbols: Arc<Symbols>,
}

/// A process's memory and the known libraries in it.
pub(super) struct Native {
    memory: File,
    mapped: Vec<Mapped>,
    /// The main thread's stack.
    pub(super) stack: Range<u64>,
}

impl Native {
    /// Opens a process's memory for reading.
    ///
    /// # Errors
    /// The system's no.
    pub(super) fn open(pid: u32, libraries: &Libraries) -> io::Result<Native> {
        let memory = File::open(format!("/proc/{pid}/mem"))?;
        let (mut mapped, mut stack) = (Vec::new(), 0..0);
        for it in ptrace::maps(pid)? {
            let file = it.file();
            if it.path == "[stack]" {
                stack = it.range;
            } else if it.is_code() && KNOWN.iter().any(|known| file.starts_with(known)) {
                let symbols = libraries.read(&format!("/proc/{pid}/root{}", it.path));
                mapped.extend(symbols.map(|symbols| Mapped {
                    is_cuda: file.starts_with("libcuda"),
                    is_torch: file.starts_with("libtorch"),
                    offset: it.offset,
                    range: it.range.clone(),
                    symbols,
                }));
            }
        }
        Ok(Native {
            memory,
            mapped,
            stack,
        })
    }

    /// What lies in memory, as far as it can be read.
    pub(super) fn bytes(&self, range: Range<u64>) -> Vec<u8> {
        let length = range.end.saturating_sub(range.start).min(1 << 20);
        let mut bytes = vec![0; length as usize];
        let read = self.memory.read_at(&mut bytes, range.start);
        bytes.truncate(read.unwrap_or(0));
        bytes
    }

    /// The innermost known function of a thread at `place`, with this above its stack pointer. Where CUDA's driver was called by
    /// its runtime, that is the runtime's function, which the program called.
    pub(super) fn function(&self, place: u64, above: &[u8]) -> Option<String> {
        let words = above.as_chunks::<8>().0.iter();
        let addresses = words.map(|it| u64::from_le_bytes(*it));
        let calls = addresses.filter(|it| self.is_after_call(*it));
        let mut found = std::iter::once(place).chain(calls).filter_map(|it| {
            let (library, name) = self.at(it)?;
            Some((library.is_cuda, name))
        });
        let (is_cuda, first) = found.next()?;
        let by = found
            .next()
            .filter(|it| is_cuda && it.0 && it.1.starts_with("cuda"));
        Some(by.map_or(first, |it| it.1))
    }

    fn at(&self, address: u64) -> Option<(&Mapped, String)> {
        let it = self.mapped.iter().find(|it| it.range.contains(&address))?;
        let name = it.symbols.name(address - it.range.start + it.offset)?;
        // Of PyTorch's many calls only those of collectives tell what is waited for.
        (!it.is_torch || name.starts_with("c10d::")).then_some((it, name))
    }

    /// Whether an address lies in a known library, behind a call.
    fn is_after_call(&self, address: u64) -> bool {
        if !self.mapped.iter().any(|it| it.range.contains(&address)) {
            return false;
        }
        let before = self.bytes(address.saturating_sub(CALL)..address);
        let Ok(before) = before.try_into() else {
            return false;
        };
        ptrace::is_after_call(&before)
    }
}

impl Libraries {
    fn read(&self, path: &str) -> Option<Arc<Symbols>> {
        let file = door::open(Path::new(path)).ok()?;
        let meta = file.metadata().ok()?;
        let mut known = self.0.lock().ok()?;
        let kept: usize = known.values().flatten().map(|it| it.functions.len()).sum();
        let read = || Symbols::read(file).filter(|it| kept + it.functions.len() <= FUNCTIONS_MAX);
        let read = || read().map(Arc::new);
        known
            .entry((meta.dev(), meta.ino()))
            .or_insert_with(read)
            .clone()
    }
}

/// The version of the NCCL library in a process, as its file says it: "NCCL version 2.28.9+cuda13.0".
pub(super) fn nccl_version(pid: u32) -> Option<[u32; 3]> {
    let maps = told(pid, "maps");
    let path = maps.lines().find_map(|it| {
        it.find("/")
            .map(|at| &it[at..])
            .filter(|it| it.contains("/libnccl.so"))
    })?;
    let file = door::open(Path::new(&format!("/proc/{pid}/root{path}"))).ok()?;
    let cache = ReadCache::new(&file);
    let (head, sections) = sections(&cache)?;
    let names = head.section_strings_index(LittleEndian, &cache).ok()?;
    let names = sections.section(names).ok()?.sh_offset.get(LittleEndian);
    // A name may be as long as the file: of each as much is read as tells.
    let is_it = |it: &&SectionHeader64<_>| {
        let (mut name, at) = ([0; 8], u64::from(it.sh_name.get(LittleEndian)));
        let read = file.read_exact_at(&mut name, names.saturating_add(at));
        read.is_ok() && name == *b".rodata\0"
    };
    let constants = sections.iter().find(is_it).filter(is_bounded)?;
    version(constants.data(LittleEndian, &cache).ok()?)
}

fn version(text: &[u8]) -> Option<[u32; 3]> {
    const BEFORE: &[u8] = b"NCCL version ";
    memchr::memmem::find_iter(text, BEFORE).find_map(|at| {
        let rest = text.get(at + BEFORE.len()..)?;
        let end = rest
            .iter()
            .position(|it| !it.is_ascii_digit() && *it != b'.')?;
        let mut numbers = std::str::from_utf8(&rest[..end])
            .ok()?
            .split('.')
            .map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some([next()?, next()?, next()?])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `nm -D` and `c++filt` have them for libcudart 13.0 and libtorch_cuda 2.11.
    #[test]
    fn names_lose_what_cpp_adds() {
        for (name, expected) in [
            ("cudaStreamSynchronize", "cudaStreamSynchronize"),
            ("cudaStreamSynchronize_ptsz", "cudaStreamSynchronize"),
            (
                "_ZN4c10d16ProcessGroupNCCL9allreduceERSt6vectorIN2at6TensorESaIS3_EERKNS_16AllreduceOptionsE",
                "c10d::ProcessGroupNCCL::allreduce",
            ),
            ("_ZNK2at10TensorBase4itemEv", "at::TensorBase::item"),
            ("_Z8plainfoov", "plainfoo"),
            ("_ZN9999", "_ZN9999"),
            ("_ZN", "_ZN"),
        ] {
            assert_eq!(plain(name), expected);
        }
    }

    #[test]
    fn a_version_is_read_from_a_library() {
        assert_eq!(
            version(b"x\0NCCL version %d\0NCCL version 2.28.9+cuda13.0\0"),
            Some([2, 28, 9])
        );
        assert_eq!(version(b"NCCL version 2.28"), None);
    }

    /// A library whose last section claims to belong to its symbols (`SHT_SYMTAB_SHNDX`), and to have 1 TiB.
    fn with_claim(library: &[u8]) -> Vec<u8> {
        let mut bytes = library.to_vec();
        let head = object::elf::FileHeader64::<LittleEndian>::parse(library).expect("a library");
        let sections = head.sections(LittleEndian, library).expect("sections");
        let is_table = |it: &SectionHeader64<_>| it.sh_type.get(LittleEndian) == SHT_DYNSYM;
        let table = sections.iter().position(is_table).expect("a table");
        let last = head.shstrndx(LittleEndian, library).expect("a number") as usize - 1;
        let at = head.e_shoff.get(LittleEndian) as usize + 64 * last;
        bytes[at + 4..at + 8].copy_from_slice(&18_u32.to_le_bytes());
        bytes[at + 32..at + 40].copy_from_slice(&(1_u64 << 40).to_le_bytes());
        bytes[at + 40..at + 44].copy_from_slice(&(table as u32).to_le_bytes());
        bytes
    }

    #[test]
    fn functions_of_the_c_library_are_found_by_address_and_nonsense_by_none() {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("its own");
        let line = maps
            .lines()
            .find(|it| it.contains("/libc.so"))
            .expect("it has one");
        let path = line.rsplit(' ').next().expect("a path");
        let symbols = Symbols::read(File::open(path).expect("readable")).expect("a library");
        let first = u64::from_str_radix(line.split('-').next().expect("a range"), 16).expect("hex");
        let address = libc::getpid as *const () as u64;
        let part = symbols
            .loaded
            .iter()
            .find(|it| address - first >= it.2 && address - first < it.2 + it.1);
        let part = part.expect("it is loaded");
        let name = symbols
            .name(address - first - part.2 + part.0)
            .expect("named");
        assert!(name.ends_with("getpid"), "{name}");
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("libnccl.so");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|it| it.success()));
        // Nobody writes: opened in the ordinary way it would be waited for.
        let of_pipe = Libraries::default().read(&pipe.to_string_lossy());
        assert!(of_pipe.is_none());
        let mut head = std::fs::read(path).expect("readable");
        head.truncate(4096);
        // e_shoff at 40, e_shnum at 60: none, so that the first section's sh_size (32) says how many there are.
        let mut endless = head.clone();
        endless[40..48].copy_from_slice(&1024_u64.to_le_bytes());
        endless[60..62].fill(0);
        endless[1024..1088].fill(0);
        endless[1056..1064].copy_from_slice(&(1_u64 << 31).to_le_bytes());
        let claims = with_claim(&std::fs::read(path).expect("readable"));
        std::fs::write(folder.path().join("claims"), claims).expect("written");
        let claims = File::open(folder.path().join("claims")).expect("readable");
        assert!(Symbols::read(claims).is_some_and(|it| it.functions == symbols.functions));
        for (name, bytes) in [
            ("a", &head[..]),
            ("b", &head[..63]),
            ("c", b"\x7fELF\x02"),
            ("d", b""),
            ("e", &endless),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).expect("written");
            // It has room for what it claims, and none of it is written.
            let file = File::options().write(true).open(&path);
            let made = file.and_then(|it| it.set_len(1 << 40));
            made.expect("a sparse file");
            assert!(
                Symbols::read(File::open(&path).expect("readable")).is_none(),
                "{name}"
            );
        }
    }
}
