//! NVRTC, CUDA's compiler as a library: found, loaded and called.
//!
//! Like the driver's functions these are looked up in a table of our own. cudarc takes whichever
//! `libnvrtc.so` lies nearest, and NVRTC's second half, `libnvrtc-builtins`, is found by the system's
//! loader only where `LD_LIBRARY_PATH` says so. Here it is opened first, by its absolute path beside
//! NVRTC, after which NVRTC finds it already loaded. Without that every compilation fails with
//! `NVRTC_ERROR_BUILTIN_OPERATION_FAILURE`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};

use super::library::Library;
use super::places::Surroundings;

/// File names of the library, newest first.
const NAMES: [(&str, u32); 3] = [
    ("libnvrtc.so.13", 13),
    ("libnvrtc.so.12", 12),
    ("libnvrtc.so.11.2", 11),
];

type Program = *mut c_void;
type Code = c_int;
type GetSize = unsafe extern "C" fn(Program, *mut usize) -> Code;
type GetBytes = unsafe extern "C" fn(Program, *mut c_char) -> Code;

/// A loaded NVRTC.
#[derive(Clone, Copy)]
struct Table {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Code,
    error_string: unsafe extern "C" fn(Code) -> *const c_char,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Code,
    destroy: unsafe extern "C" fn(*mut Program) -> Code,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Code,
    log_size: GetSize,
    log: GetBytes,
    cubin_size: GetSize,
    cubin: GetBytes,
    ptx_size: GetSize,
    ptx: GetBytes,
    architectures_count: unsafe extern "C" fn(*mut c_int) -> Code,
    architectures: unsafe extern "C" fn(*mut c_int) -> Code,
}

/// NVRTC, ready to compile.
pub(crate) struct Nvrtc {
    table: Table,
    /// The file it was loaded from.
    pub(crate) path: PathBuf,
    /// Its version, major and minor.
    pub(crate) version: (u32, u32),
    /// Compute capabilities that it makes machine code for, as 90 for 9.0, in rising order.
    pub(crate) architectures: Vec<u32>,
}

impl fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nvrtc({})", self.path.display())
    }
}

/// NVRTC was not found or does not work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NvrtcError {
    /// No file of that name anywhere.
    #[error("no CUDA compiler library (libnvrtc.so.13 or .12) was found in {looked_in} places")]
    NotFound {
        /// How many folders were looked at.
        looked_in: usize,
    },
    /// A file was found and cannot be used.
    #[error("{path} cannot be used: {why}")]
    Unusable {
        /// Which.
        path: String,
        /// Why.
        why: String,
    },
}

impl NvrtcError {
    /// What would help.
    pub(crate) fn help(&self) -> &'static str {
        "install it with `pip install nvidia-cuda-nvrtc` or with a CUDA toolkit, or set CUPTOP_NVRTC to \
         the absolute path of libnvrtc.so.13"
    }
}

impl Nvrtc {
    /// Finds and loads the NVRTC that fits the driver: of the driver's own major version where there is
    /// one, else an older one, whose code newer drivers load, else a newer one.
    ///
    /// # Errors
    /// When there is none, or none works; the last one's reason is given.
    pub(crate) fn find(driver_major: u32) -> Result<Nvrtc, NvrtcError> {
        if let Some(path) = std::env::var_os("CUPTOP_NVRTC").filter(|p| !p.is_empty()) {
            return Nvrtc::load(Path::new(&path));
        }
        let folders = Surroundings::here().folders("cuda_nvrtc");
        let mut names = NAMES;
        names.sort_by_key(|&(_, major)| match major {
            m if m <= driver_major => driver_major - m,
            m => 100 + m,
        });
        let mut last = NvrtcError::NotFound {
            looked_in: folders.len(),
        };
        for (name, _) in names {
            let files = folders.iter().map(|folder| folder.join(name));
            for file in files.filter(|file| file.exists()) {
                match Nvrtc::load(&file) {
                    Ok(found) => return Ok(found),
                    Err(error) => last = error,
                }
            }
            if let Ok(found) = Nvrtc::load(Path::new(name)) {
                return Ok(found);
            }
        }
        Err(last)
    }

    /// Loads NVRTC from a file (or, by a bare name, from where the system's loader finds it).
    ///
    /// # Errors
    /// When it cannot be loaded or lacks a function.
    #[expect(unsafe_code, reason = "looks symbols up and calls NVRTC")]
    pub(crate) fn load(path: &Path) -> Result<Nvrtc, NvrtcError> {
        let unusable = |why: String| NvrtcError::Unusable {
            path: path.display().to_string(),
            why,
        };
        let library = Library::open(path, false).map_err(unusable)?;
        // SAFETY: the types are those of nvrtc.h for these symbols, with nvrtcResult as int.
        let table = unsafe {
            macro_rules! function {
                ($name:literal) => {
                    library
                        .function($name)
                        .ok_or_else(|| unusable(format!("it has no function {:?}", $name)))?
                };
            }
            Table {
                version: function!(c"nvrtcVersion"),
                error_string: function!(c"nvrtcGetErrorString"),
                create: function!(c"nvrtcCreateProgram"),
                destroy: function!(c"nvrtcDestroyProgram"),
                compile: function!(c"nvrtcCompileProgram"),
                log_size: function!(c"nvrtcGetProgramLogSize"),
                log: function!(c"nvrtcGetProgramLog"),
                cubin_size: function!(c"nvrtcGetCUBINSize"),
                cubin: function!(c"nvrtcGetCUBIN"),
                ptx_size: function!(c"nvrtcGetPTXSize"),
                ptx: function!(c"nvrtcGetPTX"),
                architectures_count: function!(c"nvrtcGetNumSupportedArchs"),
                architectures: function!(c"nvrtcGetSupportedArchs"),
            }
        };
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: each call writes ints to the places it is given.
        let codes = unsafe {
            [
                (table.version)(&mut major, &mut minor),
                (table.architectures_count)(&mut count),
            ]
        };
        let mut architectures = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: NVRTC writes as many ints as it said there are.
        let code = unsafe { (table.architectures)(architectures.as_mut_ptr()) };
        if codes != [0, 0] || code != 0 {
            return Err(unusable("it does not tell its version".to_owned()));
        }
        let path =
            Library::path_of(table.version as *const c_void).unwrap_or_else(|| path.to_owned());
        let mut architectures: Vec<u32> =
            architectures.into_iter().map(c_int::unsigned_abs).collect();
        architectures.sort_unstable();
        let nvrtc = Nvrtc {
            table,
            version: (major.unsigned_abs(), minor.unsigned_abs()),
            architectures,
            path,
        };
        nvrtc.open_builtins();
        Ok(nvrtc)
    }

    /// Opens `libnvrtc-builtins` from NVRTC's own folder. Where it is not there, NVRTC looks for itself.
    fn open_builtins(&self) {
        let (major, minor) = self.version;
        let folders = [
            self.path.parent().map(Path::to_owned),
            self.path
                .canonicalize()
                .ok()
                .and_then(|p| p.parent().map(Path::to_owned)),
        ];
        for folder in folders.into_iter().flatten() {
            let file = folder.join(format!("libnvrtc-builtins.so.{major}.{minor}"));
            if file.exists() && Library::open(&file, false).is_ok() {
                return;
            }
        }
    }

    /// Compiles `source`, called `name` in messages.
    ///
    /// # Errors
    /// With NVRTC's log, when it has one.
    #[expect(unsafe_code, reason = "calls NVRTC")]
    pub(crate) fn compile(
        &self,
        name: &str,
        source: &str,
        options: &[String],
        output: Output,
    ) -> Result<Vec<u8>, String> {
        let text = |s: &str| CString::new(s).map_err(|_| "the source holds a NUL byte".to_owned());
        let (source, name) = (text(source)?, text(name)?);
        let options = options
            .iter()
            .map(|o| text(o))
            .collect::<Result<Vec<_>, _>>()?;
        let options: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        let mut program = Job {
            table: &self.table,
            program: std::ptr::null_mut(),
        };
        // SAFETY: the strings are NUL-terminated and outlive the call; there are no headers.
        let code = unsafe {
            (self.table.create)(
                &mut program.program,
                source.as_ptr(),
                name.as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            )
        };
        if code != 0 {
            return Err(self.describe(code));
        }
        let count = c_int::try_from(options.len()).unwrap_or(0);
        // SAFETY: the program was created; `options` holds `count` NUL-terminated strings, which the
        // shadowed vector keeps alive.
        let code = unsafe { (self.table.compile)(program.program, count, options.as_ptr()) };
        if code != 0 {
            let log = program
                .read(self.table.log_size, self.table.log)
                .map(|log| {
                    String::from_utf8_lossy(&log)
                        .trim_end_matches('\0')
                        .trim()
                        .to_owned()
                })
                .unwrap_or_default();
            return Err(if log.is_empty() {
                self.describe(code)
            } else {
                log
            });
        }
        let image = match output {
            Output::Cubin => program.read(self.table.cubin_size, self.table.cubin),
            Output::Ptx => program.read(self.table.ptx_size, self.table.ptx),
        };
        image.map_err(|code| self.describe(code))
    }

    #[expect(unsafe_code, reason = "calls NVRTC")]
    fn describe(&self, code: Code) -> String {
        // SAFETY: takes any code; returns a static string or null.
        let text = unsafe { (self.table.error_string)(code) };
        if text.is_null() {
            return format!("NVRTC error {code}");
        }
        // SAFETY: NVRTC returned a NUL-terminated static string.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    }
}

/// What to make of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Machine code for one architecture.
    Cubin,
    /// Code that the driver translates when it loads it.
    Ptx,
}

/// A program inside NVRTC, destroyed when it goes out of scope.
struct Job<'a> {
    table: &'a Table,
    program: Program,
}

impl Job<'_> {
    #[expect(unsafe_code, reason = "calls NVRTC")]
    fn read(&self, size: GetSize, get: GetBytes) -> Result<Vec<u8>, Code> {
        let mut length = 0;
        // SAFETY: the program was created; writes one size.
        let code = unsafe { size(self.program, &mut length) };
        if code != 0 {
            return Err(code);
        }
        let mut bytes = vec![0_u8; length];
        // SAFETY: NVRTC writes as many bytes as it said it would.
        match unsafe { get(self.program, bytes.as_mut_ptr().cast()) } {
            0 => Ok(bytes),
            code => Err(code),
        }
    }
}

impl Drop for Job<'_> {
    #[expect(unsafe_code, reason = "calls NVRTC")]
    fn drop(&mut self) {
        if !self.program.is_null() {
            // SAFETY: the program was created by this NVRTC and is destroyed once.
            unsafe {
                (self.table.destroy)(&mut self.program);
            }
        }
    }
}
