//! At which source line each place of a kernel's code is, from the line tables of its module (`-lineinfo`, Triton).
//!
//! A module is somebody's machine code. Of one only the headers of its sections are looked at. Where it has a line table, that and the
//! names of its functions are copied on the program's thread, and read on this library's. No code is kept.

use std::collections::HashMap;
use std::ffi::c_void;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex};

use crossbeam_channel::{Receiver, Sender, bounded};
use cupti_sys::Api;
use cupti_sys::api::SUCCESS;
use cupti_sys::stalls::SourceLine;
use gimli::{AttributeValue, DebugLine, DebugLineOffset, EndianSlice, LineProgramHeader};
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget};

use crate::fork;
use crate::nodes::Resource;

/// Modules that wait to be read, bytes of one table, and of all that are copied.
const WAITING: usize = 256;
const TABLE: usize = 4 << 20;
const ALL: usize = 16 << 20;
/// Functions of a module, and bytes of a name.
const FUNCTIONS: usize = 1 << 14;
const NAME: usize = 1 << 13;
/// Rows of all modules, some 80 bytes each.
const ROWS: usize = 1 << 18;

type Slice<'a> = EndianSlice<'a, gimli::LittleEndian>;

/// Of one module its line table, and the functions in it: where their addresses stand there, and their names.
type Tables = (Vec<u8>, Vec<(u64, Vec<u8>)>);

/// The same with its number.
#[derive(Debug)]
pub(crate) struct Module(u64, Tables);

/// `cuptiGetCubinCrc`, who reads modules, and how much more may be copied.
type Wanted = (
    unsafe extern "C" fn(*mut c_void) -> u32,
    Sender<Module>,
    usize,
);
static WANTED: Mutex<Option<Wanted>> = Mutex::new(None);

/// The beginning of `CUpti_ModuleResourceData`, the same from 11.8 to 13.5: number, size and code.
#[repr(C)]
struct Loaded(u32, usize, *const u8);

/// `CUpti_GetCubinCrcParams`: its size, the code's size, the code, and the number.
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
    if !details.is_null() && !fork::is_child() {
        let _ = catch_unwind(|| copy(details));
    }
}

fn copy(details: *const c_void) -> Option<()> {
    // SAFETY: for this domain CUPTI passes this structure, and for this id such a descriptor; both live until this returns.
    let data = unsafe { (*details.cast::<Resource<Loaded>>()).descriptor.as_ref() };
    let data = data.filter(|it| !it.2.is_null() && it.1 > 0)?;
    // SAFETY: the module's code, of the size that CUPTI says; it lives until this returns.
    let tables = tables(unsafe { std::slice::from_raw_parts(data.2, data.1) })?;
    let mut wanted = WANTED.lock().ok()?;
    let (number, modules, room) = wanted.as_mut().filter(|it| it.2 >= tables.0.len())?;
    *room -= tables.0.len();
    let mut of = Numbered(size_of::<Numbered>(), data.1, data.2, 0);
    // SAFETY: the structure is the one of the function's header and says its size.
    let code = unsafe { number((&raw mut of).cast()) };
    (code == SUCCESS && modules.try_send(Module(of.3, tables)).is_ok()).then_some(())
}

/// What is copied of a module, an ELF file; nothing of one without a line table, or with a large one.
fn tables(cubin: &[u8]) -> Option<Tables> {
    let file = ElfFile64::<object::LittleEndian>::parse(cubin).ok()?;
    let section = file.section_by_name(".debug_line")?;
    let table = section.data().ok().filter(|it| it.len() <= TABLE)?;
    let name = |it| file.symbol_by_index(it).ok()?.name_bytes().ok();
    let name = |it| name(it).filter(|it| it.len() <= NAME);
    let functions = section
        .relocations()
        .take(FUNCTIONS)
        .filter_map(|(at, it)| match it.target() {
            RelocationTarget::Symbol(of) => Some((at, name(of)?.to_vec())),
            _ => None,
        });
    Some((table.to_vec(), functions.collect()))
}

/// For each function where in its code the lines begin, in order.
type Functions = HashMap<Vec<u8>, Vec<(u64, SourceLine)>>;

/// Lines of functions by module.
#[derive(Debug, Default)]
pub(crate) struct ModuleLines {
    modules: HashMap<u64, Functions>,
    rows: usize,
}

impl ModuleLines {
    /// Reads a module's table as far as it is sound.
    pub(crate) fn add(&mut self, Module(of, (mut table, functions)): Module) {
        for (number, (at, _)) in (1_u64..).zip(&functions) {
            // In the table functions begin at 0. Each gets a place of its own instead.
            let at = usize::try_from(*at).ok();
            if let Some(at) = at.and_then(|at| table.get_mut(at..at.checked_add(8)?)) {
                at.copy_from_slice(&(number << 32).to_le_bytes());
            }
        }
        let mut all = vec![Vec::new(); functions.len()];
        self.read(&table, &mut all);
        all.iter_mut().for_each(|it| it.sort_by_key(|it| it.0));
        let named = functions.into_iter().map(|it| it.1).zip(all);
        self.modules.entry(of).or_default().extend(named);
    }

    fn read(&mut self, table: &[u8], into: &mut [Vec<(u64, SourceLine)>]) {
        let section = DebugLine::new(table, gimli::LittleEndian);
        let mut at = 0;
        while at < table.len()
            && let Ok(program) = section.program(DebugLineOffset(at), 8, None, None)
        {
            let header = program.header();
            at += header.unit_length() + usize::from(header.format().initial_length_size());
            let mut rows = program.rows();
            while let Ok(Some((header, row))) = rows.next_row()
                && self.rows < ROWS
            {
                self.rows += 1;
                let line = row.line().filter(|_| !row.end_sequence());
                let line = line.and_then(|it| u32::try_from(it.get()).ok());
                let function = (row.address() >> 32).checked_sub(1);
                if let Some(of) = function.and_then(|it| into.get_mut(it as usize)) {
                    of.push((
                        row.address() & u64::from(u32::MAX),
                        line.and_then(|it| Some((path(header, row.file_index())?, it))),
                    ));
                }
            }
        }
    }

    /// Which line a place in a function of a module is of.
    pub(crate) fn at(&self, module: u64, function: &[u8], offset: u64) -> SourceLine {
        let rows = self.modules.get(&module)?.get(function)?;
        let next = rows.partition_point(|it| it.0 <= offset);
        rows[next.checked_sub(1)?].1.clone()
    }
}

fn path(header: &LineProgramHeader<Slice<'_>>, file: u64) -> Option<Arc<str>> {
    let text = |it| match it {
        AttributeValue::String(text) => Some(String::from_utf8_lossy(Slice::slice(&text))),
        _ => None,
    };
    let file = header.file(file)?;
    let name = text(file.path_name())?;
    Some(match file.directory(header).and_then(text) {
        Some(folder) if !name.starts_with('/') => format!("{folder}/{name}").into(),
        _ => name.into(),
    })
}

#[cfg(test)]
mod tests;
