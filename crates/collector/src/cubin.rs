//! At which source line each place of a kernel's code is, from the line tables of its module (`-lineinfo`, Triton).
//!
//! A module is somebody's machine code. Of one only the headers of its sections are looked at. Where it has a line table, that and its
//! names are copied on the program's thread, and read on this library's. No code is kept.

use std::collections::HashMap;
use std::ffi::c_void;
use std::panic::catch_unwind;
use std::sync::Mutex;

use crossbeam_channel::{Receiver, Sender, bounded};
use cupti_sys::Api;
use cupti_sys::api::SUCCESS;
use cupti_sys::stalls::SourceLine;
use gimli::{AttributeValue, DebugLine, DebugLineOffset, EndianSlice, LineProgramHeader};

use crate::fork;
use crate::nodes::Resource;

/// Modules that wait to be read, bytes of one table, and of all that are copied.
const WAITING: usize = 256;
const TABLE: usize = 4 << 20;
const ALL: usize = 16 << 20;
/// Rows of all modules, 16 bytes each.
const ROWS: usize = 1 << 20;
/// What is copied.
const SECTIONS: [&str; 4] = [".debug_line", ".rela.debug_line", ".symtab", ".strtab"];

type Slice<'a> = EndianSlice<'a, gimli::LittleEndian>;

/// The tables of one module, and its number.
#[derive(Debug)]
pub(crate) struct Module(u64, [Vec<u8>; 4]);

/// `cuptiGetCubinCrc`, who reads modules, and how much more may be copied.
type Wanted = (
    unsafe extern "C" fn(*mut c_void) -> u32,
    Sender<Module>,
    usize,
);
static WANTED: Mutex<Option<Wanted>> = Mutex::new(None);

/// The beginning of `CUpti_ModuleResourceData`, the same from 11.8 to 13.5.
#[repr(C)]
struct Loaded {
    module: u32,
    size: usize,
    cubin: *const u8,
}

/// `CUpti_GetCubinCrcParams`: its size, the code, and the number.
#[repr(C)]
struct Numbered(usize, usize, *const u8, u64);

/// Begins to copy the tables of modules that are loaded from now on. They end where nobody receives them.
pub(crate) fn begin(api: &Api) -> Receiver<Module> {
    let (modules, received) = bounded(WAITING);
    if let Ok(mut wanted) = WANTED.lock() {
        *wanted = api.cubin_crc.map(|number| (number, modules, ALL));
    }
    received
}

/// CUPTI's callback for a module that was loaded.
pub(crate) fn loaded(details: *const c_void) {
    // In a forked child nobody would unlock what another thread of the parent had locked.
    if details.is_null() || fork::is_child() {
        return;
    }
    let _ = catch_unwind(|| {
        // SAFETY: for this domain CUPTI passes this structure, and for this id such a descriptor; both live until this returns.
        let data = unsafe { (*details.cast::<Resource<Loaded>>()).descriptor.as_ref() };
        let Some(data) = data.filter(|it| !it.cubin.is_null() && it.size > 0) else {
            return;
        };
        // SAFETY: the module's code, of the size that CUPTI says; it lives until this returns.
        let cubin = unsafe { std::slice::from_raw_parts(data.cubin, data.size) };
        let Some(tables) = tables(cubin) else {
            return;
        };
        let size = tables.iter().map(|it| it.len()).sum();
        let Ok(mut wanted) = WANTED.lock() else {
            return;
        };
        let Some((number, modules, room)) = wanted.as_mut().filter(|it| it.2 >= size) else {
            return;
        };
        let mut of = Numbered(size_of::<Numbered>(), data.size, data.cubin, 0);
        // SAFETY: the structure is the one of the function's header and says its size.
        let code = unsafe { number((&raw mut of).cast()) };
        if code == SUCCESS
            && modules
                .try_send(Module(of.3, tables.map(<[u8]>::to_vec)))
                .is_ok()
        {
            *room -= size;
        }
    });
}

/// A number of so many bytes.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    let mut whole = [0; 8];
    whole[..length].copy_from_slice(bytes.get(at..at.checked_add(length)?)?);
    usize::try_from(u64::from_le_bytes(whole)).ok()
}

/// What is copied of a module, an ELF file; nothing of one without a line table, or with a large one.
fn tables(cubin: &[u8]) -> Option<[&[u8]; 4]> {
    let is_elf = cubin.starts_with(b"\x7fELF\x02\x01");
    let headers = number(cubin, 40, 8).filter(|_| is_elf)?;
    let header = |index: usize, at| headers.checked_add(64 * index + at);
    let section = |index| {
        let from = number(cubin, header(index, 24)?, 8)?;
        let length = number(cubin, header(index, 32)?, 8)?;
        cubin.get(from..from.checked_add(length)?)
    };
    let texts = section(number(cubin, 62, 2)?)?;
    let has = |index, name: &str| {
        let text = texts.get(number(cubin, header(index, 0)?, 4)?..)?;
        Some(text.strip_prefix(name.as_bytes())?.first() == Some(&0))
    };
    let count = number(cubin, 60, 2)?;
    let named = |name: &str| section((0..count).find(|it| has(*it, name) == Some(true))?);
    let found = SECTIONS.map(|name| named(name).filter(|it| it.len() <= TABLE));
    Some([found[0]?, found[1]?, found[2]?, found[3]?])
}

/// Lines of functions by module, and their files.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    modules: HashMap<u64, Functions>,
    pub(crate) files: Vec<String>,
    numbers: HashMap<String, u32>,
    rows: usize,
}

/// For each function where in its code the lines begin, in order.
type Functions = HashMap<Vec<u8>, Vec<(u64, SourceLine)>>;

impl Lines {
    /// Reads a module's tables as far as they are sound.
    pub(crate) fn add(&mut self, Module(of, [mut table, relocations, symbols, names]): Module) {
        for it in relocations.chunks_exact(24) {
            // In the table functions begin at 0. Each gets a place of its own instead, by its symbol.
            let place = (1 + number(it, 12, 4).unwrap_or(0) as u64) << 32;
            let at = number(it, 0, 8).and_then(|at| table.get_mut(at..at.checked_add(8)?));
            if let Some(at) = at {
                at.copy_from_slice(&place.to_le_bytes());
            }
        }
        let mut by_symbol: HashMap<u64, Vec<(u64, SourceLine)>> = HashMap::new();
        self.rows(&table, &mut by_symbol);
        let name = |symbol: u64| {
            let entry = usize::try_from(symbol).ok()?.checked_sub(1)? * 24;
            let text = names.get(number(&symbols, entry, 4)?..)?;
            text.split(|it| *it == 0).next().map(<[u8]>::to_vec)
        };
        let functions = self.modules.entry(of).or_default();
        for (symbol, mut rows) in by_symbol {
            rows.sort_by_key(|it| it.0);
            functions.extend(name(symbol).map(|name| (name, rows)));
        }
    }

    fn rows(&mut self, table: &[u8], into: &mut HashMap<u64, Vec<(u64, SourceLine)>>) {
        let section = DebugLine::new(table, gimli::LittleEndian);
        let mut at = 0;
        while at < table.len()
            && let Ok(program) = section.program(DebugLineOffset(at), 8, None, None)
        {
            let header = program.header();
            at += header.unit_length() + usize::from(header.format().initial_length_size());
            let mut files = HashMap::new();
            let mut rows = program.rows();
            while let Ok(Some((header, row))) = rows.next_row() {
                self.rows += 1;
                if self.rows > ROWS {
                    return;
                }
                let file = files.entry(row.file_index());
                let file =
                    *file.or_insert_with(|| Some(self.file(path(header, row.file_index())?)));
                let line = row.line().and_then(|it| u32::try_from(it.get()).ok());
                let line = file.zip(line.filter(|_| !row.end_sequence()));
                let offset = row.address() & u64::from(u32::MAX);
                into.entry(row.address() >> 32)
                    .or_default()
                    .push((offset, line));
            }
        }
    }

    /// The number of a file.
    fn file(&mut self, path: String) -> u32 {
        let new = self.files.len() as u32;
        let number = *self.numbers.entry(path.clone()).or_insert(new);
        if number == new {
            self.files.push(path);
        }
        number
    }

    /// Which line a place in a function of a module is of.
    pub(crate) fn at(&self, module: u64, function: &[u8], offset: u64) -> SourceLine {
        let rows = self.modules.get(&module)?.get(function)?;
        rows[..rows.partition_point(|it| it.0 <= offset)].last()?.1
    }
}

fn path(header: &LineProgramHeader<Slice<'_>>, file: u64) -> Option<String> {
    let text = |it| match it {
        AttributeValue::String(text) => {
            Some(String::from_utf8_lossy(Slice::slice(&text)).into_owned())
        }
        _ => None,
    };
    let file = header.file(file)?;
    let (name, folder) = (
        text(file.path_name())?,
        file.directory(header).and_then(text),
    );
    Some(match folder.filter(|_| !name.starts_with('/')) {
        Some(folder) => format!("{folder}/{name}"),
        None => name,
    })
}

#[cfg(test)]
mod tests;
