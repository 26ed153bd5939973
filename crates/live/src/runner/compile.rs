//! Kernels: CUDA C++ text to an image that the driver loads, with a cache.
//!
//! NVRTC takes 20 to 500 ms a file; a scenario that is edited and run again must not pay that again. An
//! entry of the cache holds the whole key beside the image: NVRTC's version, the options, the file's
//! name and text. It is only used when all of that is equal, so a collision of file names costs a
//! compilation and nothing else. A source with an `#include` is compiled each time, because what it
//! includes may have changed.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::nvrtc::{CodeKind, Nvrtc};
use crate::private;

/// Entries that the cache keeps; the oldest go first. 200 kB each is the most seen.
const CACHE_ENTRIES: usize = 256;
/// The first bytes of an entry; the digit is the format's version.
const MAGIC: &[u8; 8] = b"cuptopK1";

/// A kernel source to compile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// The file's name, for messages ("matmul.cu").
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
    /// Where its `#include "…"` are looked for.
    pub(crate) include: Option<&'a Path>,
}

/// A source that does not compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file} does not compile{}:\n{log}", match .line { Some(line) => format!(" (line {line})"), None => String::new() })]
pub(crate) struct CompileError {
    /// The file's name.
    pub(crate) file: String,
    /// The line of the first error.
    pub(crate) line: Option<u32>,
    /// What NVRTC said.
    pub(crate) log: String,
}

/// Compiles for one architecture, through the cache.
pub(crate) struct Compiler {
    nvrtc: Nvrtc,
    options: Vec<String>,
    output: CodeKind,
    cache: Option<PathBuf>,
}

impl Compiler {
    /// A compiler for devices of compute capability `capability` (90 for 9.0). `cache` is a folder, which
    /// is made when it is first needed.
    pub(crate) fn new(nvrtc: Nvrtc, capability: u32, cache: Option<PathBuf>) -> Compiler {
        let (target, output) = target(&nvrtc.architectures, capability);
        let mut options = vec![
            format!("--gpu-architecture={target}"),
            "--std=c++17".to_owned(),
            "--generate-line-info".to_owned(),
        ];
        // A toolkit's headers (cuda_fp16.h and the like) lie beside its lib folder.
        let headers = nvrtc.path.parent().and_then(Path::parent);
        if let Some(include) = headers.map(|p| p.join("include"))
            && include.join("cuda_fp16.h").exists()
        {
            options.push(format!("--include-path={}", include.display()));
        }
        Compiler {
            nvrtc,
            options,
            output,
            cache,
        }
    }

    /// The image of a source: a cubin, or NUL-terminated PTX.
    ///
    /// # Errors
    /// When NVRTC rejects the source.
    pub(crate) fn compile(&self, source: Source<'_>) -> Result<Vec<u8>, CompileError> {
        let key = self.key(source);
        let entry = match &self.cache {
            Some(folder) if !source.text.contains("#include") => {
                Some(folder.join(format!("{:016x}.kernel", activity::text::fingerprint(&key))))
            }
            _ => None,
        };
        if let Some(image) = entry.as_deref().and_then(|entry| read_entry(entry, &key)) {
            return Ok(image);
        }
        let mut options = self.options.clone();
        if let Some(folder) = source.include {
            options.push(format!("--include-path={}", folder.display()));
        }
        let image = self
            .nvrtc
            .compile(source.file, source.text, &options, self.output)
            .map_err(|log| CompileError {
                file: source.file.to_owned(),
                line: first_line(&log, source.file),
                log,
            })?;
        if let Some(entry) = entry {
            // A cache that cannot be written (a full disk, a read-only home) only costs time.
            let _ = write_entry(&entry, &key, &image);
        }
        Ok(image)
    }

    fn key(&self, source: Source<'_>) -> Vec<u8> {
        let (major, minor) = self.nvrtc.version;
        let options = self.options.join(" ");
        format!(
            "nvrtc {major}.{minor}\n{options}\n{}\n{}",
            source.file, source.text
        )
        .into_bytes()
    }
}

/// The target to compile for. It is machine code for the device where NVRTC can, else for an older
/// device of the same major version. (Machine code runs on later minor versions.) Else it is PTX for
/// the newest older architecture, which the driver translates.
fn target(architectures: &[u32], capability: u32) -> (String, CodeKind) {
    let mut newest_first = architectures.iter().rev().copied();
    let older = newest_first.find(|&a| a <= capability);
    match older {
        Some(a) if a / 10 == capability / 10 => (format!("sm_{a}"), CodeKind::Cubin),
        Some(a) => (format!("compute_{a}"), CodeKind::Ptx),
        // Too old for this NVRTC: let it say so.
        None => (format!("sm_{capability}"), CodeKind::Cubin),
    }
}

/// The line of the first error in a log: "matmul.cu(12): error: …".
fn first_line(log: &str, file: &str) -> Option<u32> {
    log.lines()
        .filter(|line| line.contains("error"))
        .find_map(|line| {
            let rest = line.strip_prefix(file)?.strip_prefix('(')?;
            rest.split_once(')')?.0.parse().ok()
        })
}

fn read_entry(entry: &Path, key: &[u8]) -> Option<Vec<u8>> {
    let bytes = activity::door::read(entry, 64 << 20).ok()?;
    let rest = bytes.strip_prefix(MAGIC)?;
    let (key_length, rest) = rest.split_first_chunk::<8>()?;
    let (image_length, rest) = rest.split_first_chunk::<8>()?;
    let key_length = usize::try_from(u64::from_le_bytes(*key_length)).ok()?;
    let image_length = usize::try_from(u64::from_le_bytes(*image_length)).ok()?;
    let (stored, image) = rest.split_at_checked(key_length)?;
    (stored == key && image.len() == image_length && !image.is_empty()).then(|| image.to_vec())
}

fn write_entry(entry: &Path, key: &[u8], image: &[u8]) -> io::Result<()> {
    let folder = entry.parent().unwrap_or(Path::new("."));
    private::folder(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(MAGIC)?;
    file.write_all(&(key.len() as u64).to_le_bytes())?;
    file.write_all(&(image.len() as u64).to_le_bytes())?;
    file.write_all(key)?;
    file.write_all(image)?;
    file.persist(entry)?;
    forget_oldest(folder)
}

fn forget_oldest(folder: &Path) -> io::Result<()> {
    let mut entries: Vec<(std::time::SystemTime, PathBuf)> = fs::read_dir(folder)?
        .flatten()
        .filter(|e| e.path().extension().is_some_and(|x| x == "kernel"))
        .filter_map(|e| Some((e.metadata().ok()?.modified().ok()?, e.path())))
        .collect();
    if entries.len() > CACHE_ENTRIES {
        entries.sort();
        for (_, path) in &entries[..entries.len() - CACHE_ENTRIES] {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use cupti_sys::library::{Library, Visibility};

    use super::*;

    #[test]
    fn a_device_gets_the_nearest_code_that_it_can_run() {
        let known = [75, 80, 86, 90, 100];
        let cases = [
            (90, "sm_90", CodeKind::Cubin),
            (89, "sm_86", CodeKind::Cubin),
            (103, "sm_100", CodeKind::Cubin),
            (120, "compute_100", CodeKind::Ptx),
            (70, "sm_70", CodeKind::Cubin),
        ];
        for (capability, expected, output) in cases {
            let found = target(&known, capability);
            assert_eq!(found, (expected.to_owned(), output), "{capability}");
        }
    }

    #[test]
    fn the_first_error_names_its_line() {
        let log = "sin.cu(3): warning #177-D: variable declared\n\
                   sin.cu(12): error: identifier \"foo\" is undefined\n\
                   sin.cu(14): error: expected a \";\"";
        assert_eq!(first_line(log, "sin.cu"), Some(12));
        assert_eq!(first_line("fatal error", "sin.cu"), None);
    }

    #[test]
    fn an_entry_is_used_only_when_its_whole_key_is_equal() {
        let folder = tempfile::tempdir().expect("a directory");
        let entry = folder.path().join("kernels/1.kernel");
        write_entry(&entry, b"key", b"image").expect("written");
        assert_eq!(read_entry(&entry, b"key").as_deref(), Some(&b"image"[..]));
        assert_eq!(read_entry(&entry, b"kez"), None);
        let mode = fs::metadata(folder.path().join("kernels"))
            .expect("there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        let whole = fs::read(&entry).expect("readable");
        for cut in 0..whole.len() {
            fs::write(&entry, &whole[..cut]).expect("written");
            assert_eq!(read_entry(&entry, b"key"), None, "cut at {cut}");
        }
    }

    /// The real NVRTC that the environment names.
    fn nvrtc() -> Nvrtc {
        let path = std::env::var_os("CUPTOP_TEST_NVRTC").expect("CUPTOP_TEST_NVRTC names one");
        let library = Library::open(Path::new(&path), Visibility::Local).expect("a library");
        Nvrtc::load(library, Path::new(&path)).expect("the NVRTC to test with loads")
    }

    /// The machine an ELF image is for: EM_CUDA is 190.
    fn elf_machine(image: &[u8]) -> Option<u16> {
        let rest = image.strip_prefix(b"\x7fELF")?;
        Some(u16::from_le_bytes([*rest.get(14)?, *rest.get(15)?]))
    }

    #[test]
    #[ignore = "needs NVRTC, named by CUPTOP_TEST_NVRTC"]
    fn every_bundled_kernel_compiles_to_machine_code() {
        for capability in [75, 80, 90] {
            let nvrtc = nvrtc();
            let compiler = Compiler::new(nvrtc, capability, None);
            for (file, text) in scenario::testing::library().kernels {
                let source = Source {
                    file,
                    text,
                    include: None,
                };
                let image = compiler.compile(source).expect("it compiles");
                assert_eq!(elf_machine(&image), Some(190), "{file} for sm_{capability}");
            }
        }
    }

    #[test]
    #[ignore = "needs NVRTC, named by CUPTOP_TEST_NVRTC"]
    fn a_mistake_is_reported_with_its_line_and_nothing_is_cached() {
        let nvrtc = nvrtc();
        let folder = tempfile::tempdir().expect("a directory");
        let compiler = Compiler::new(nvrtc, 90, Some(folder.path().join("kernels")));
        let source = Source {
            file: "bad.cu",
            text: "extern \"C\" __global__ void k(float* x) {\n  x[0] = y;\n}\n",
            include: None,
        };
        let error = compiler.compile(source).expect_err("y is unknown");
        assert_eq!(error.line, Some(2));
        assert!(error.log.contains("\"y\" is undefined"), "{}", error.log);
        assert!(!folder.path().join("kernels").exists());
        let good = Source {
            text: "extern \"C\" __global__ void k(float* x) { x[0] = 1; }",
            ..source
        };
        let image = compiler.compile(good).expect("it compiles");
        let entries = || {
            fs::read_dir(folder.path().join("kernels"))
                .expect("made")
                .count()
        };
        assert_eq!(entries(), 1);
        assert_eq!(compiler.compile(good).expect("from the cache"), image);
        let included = Source {
            text: "#include \"local.h\"\nextern \"C\" __global__ void k(float* x) { x[0] = ONE; }",
            include: Some(folder.path()),
            ..source
        };
        fs::write(folder.path().join("local.h"), "#define ONE 1.0f\n").expect("written");
        compiler.compile(included).expect("its include is found");
        assert_eq!(entries(), 1, "what includes is compiled each time");
    }

    #[test]
    fn the_cache_forgets_its_oldest_entries() {
        let folder = tempfile::tempdir().expect("a directory");
        for i in 0..CACHE_ENTRIES {
            fs::write(folder.path().join(format!("{i}.kernel")), b"x").expect("written");
        }
        let old = folder.path().join("7.kernel");
        let file = fs::File::open(&old).expect("there");
        let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
        file.set_modified(long_ago).expect("a file time");
        write_entry(&folder.path().join("new.kernel"), b"key", b"image").expect("written");
        assert!(!old.exists());
        let left = fs::read_dir(folder.path()).expect("there").count();
        assert_eq!(left, CACHE_ENTRIES);
    }
}
