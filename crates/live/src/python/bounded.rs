//! Files of other processes that are read as ELF: none may claim more than a library or an interpreter has.

use std::io;
use std::path::Path;

use object::elf::{FileHeader64, SHF_WRITE, SHT_DYNSYM, SHT_SYMTAB, SectionHeader64, Sym64};
use object::read::elf::{FileHeader as _, SectionHeader as _, SectionTable};
use object::{LittleEndian, ReadCache, ReadRef, SectionIndex};

use activity::door;

/// More than the greatest library's table of functions, in bytes.
const LARGEST: u64 = 64 << 20;
/// Sections, and parts that are loaded, which a file may have.
const PARTS_MAX: u32 = 1 << 10;
/// Bytes of an interpreter's variables, and of all its functions' names.
const VARIABLES_MAX: u64 = 256 << 20;
const NAMES_MAX: usize = 256 << 20;

type Head = FileHeader64<LittleEndian>;

/// The head of a 64-bit file and its sections. Nothing of one that is no such, or claims more parts than a library has:
/// all of them are read at once.
pub(crate) fn sections<'d, R: ReadRef<'d>>(
    file: R,
) -> Option<(&'d Head, SectionTable<'d, Head, R>)> {
    let head = Head::parse(file).ok()?;
    let sections = head.shnum(LittleEndian, file).ok()?;
    let programs = head.phnum(LittleEndian, file).ok()?;
    let sections = (sections.max(programs) <= PARTS_MAX).then(|| head.sections(LittleEndian, file));
    Some((head, sections?.ok()?))
}

/// Whether a section has no more than may be read.
pub(crate) fn is_bounded(section: &&SectionHeader64<LittleEndian>) -> bool {
    section.sh_size.get(LittleEndian) <= LARGEST
}

/// Whether what a process calls its interpreter claims no more than one has: py-spy believes its files.
pub(super) fn has_sound_interpreter(pid: u32) -> bool {
    let maps = ptrace::maps(pid).unwrap_or_default().into_iter();
    let libraries = maps.filter(|it| it.file().starts_with("libpython"));
    let mut all: Vec<String> = libraries.map(|it| format!("root{}", it.path)).collect();
    all.dedup();
    all.push("exe".to_owned());
    all.iter()
        .all(|it| is_sound(Path::new(&format!("/proc/{pid}/{it}"))).is_some())
}

/// Something of a file that is sound, or that py-spy may not open either.
fn is_sound(path: &Path) -> Option<()> {
    let file = match door::open(path) {
        Err(error) => return (error.kind() != io::ErrorKind::InvalidInput).then_some(()),
        Ok(file) => file,
    };
    let cache = ReadCache::new(&file);
    let (_, sections) = sections(&cache)?;
    let mut names_left = NAMES_MAX;
    for section in sections.iter() {
        let is_variable = section.sh_flags.get(LittleEndian).0 & SHF_WRITE.0 != 0;
        if is_variable && section.sh_size.get(LittleEndian) > VARIABLES_MAX {
            return None;
        }
        if ![SHT_SYMTAB, SHT_DYNSYM].contains(&section.sh_type.get(LittleEndian)) {
            continue;
        }
        let names = SectionIndex(section.sh_link.get(LittleEndian) as usize);
        let names = Some(sections.section(names).ok()?).filter(is_bounded)?;
        let names = names.data(LittleEndian, &cache).ok()?;
        let table = Some(section).filter(is_bounded)?;
        let all: &[Sym64<LittleEndian>] = table.data_as_array(LittleEndian, &cache).ok()?;
        for it in all {
            let rest = names.get(it.st_name.get(LittleEndian) as usize..);
            let name = rest.and_then(|it| memchr::memchr(0, it));
            names_left = names_left.checked_sub(name.unwrap_or(0) + size_of_val(it))?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This program as it is, with variables of 64 TiB, and with functions that all have its whole table of names for a name.
    #[test]
    fn what_claims_too_much_is_no_interpreter() {
        assert!(is_sound(Path::new("/proc/self/exe")).is_some());
        let whole = std::fs::read("/proc/self/exe").expect("readable");
        let head = FileHeader64::<LittleEndian>::parse(&*whole).expect("a program");
        let sections = head.sections(LittleEndian, &*whole).expect("sections");
        let at = |index: usize| head.e_shoff.get(LittleEndian) as usize + 64 * index;
        let place = |is_it: &dyn Fn(&SectionHeader64<LittleEndian>) -> bool| {
            sections.iter().position(is_it).expect("it has one")
        };
        let bss = place(&|it| it.sh_flags.get(LittleEndian).0 & SHF_WRITE.0 != 0);
        let table = place(&|it| it.sh_type.get(LittleEndian) == SHT_SYMTAB);
        let folder = tempfile::tempdir().expect("a folder");
        let changed = |from: usize, bytes: &[u8]| {
            let (mut file, path) = (whole.clone(), folder.path().join("python"));
            file[from..from + bytes.len()].copy_from_slice(bytes);
            std::fs::write(&path, file).expect("written");
            is_sound(&path)
        };
        assert!(changed(at(bss) + 32, &(1_u64 << 46).to_le_bytes()).is_none());
        let names = sections
            .iter()
            .nth(table)
            .expect("it")
            .sh_link
            .get(LittleEndian) as usize;
        let names = sections.iter().nth(names).expect("names");
        let [from, length] =
            [names.sh_offset, names.sh_size].map(|it| it.get(LittleEndian) as usize);
        assert!(changed(from, &vec![b'x'; length - 1]).is_none());
    }
}
