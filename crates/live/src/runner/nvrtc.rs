//! NVRTC, CUDA's compiler as a library: found, loaded and called.
//!
//! Types are cudarc's, the table is our own (docs/DECISIONS.md says why). NVRTC's second half, `libnvrtc-builtins`, is
//! found by the system's loader only where `LD_LIBRARY_PATH` says so. Here it is opened first, by its absolute path
//! beside NVRTC, after which NVRTC finds it already loaded. Without that every compilation fails with
//! `NVRTC_ERROR_BUILTIN_OPERATION_FAILURE`.

#![expect(unsafe_code, reason = "looks symbols up and calls NVRTC")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Path, PathBuf};

use cudarc::nvrtc::sys::nvrtcProgram as Program;
use cupti_sys::fit::{NoneFits, first_fit};
use cupti_sys::library::{Library, Visibility};
use cupti_sys::search::{NVRTC, Surroundings};

/// What a function of NVRTC returned; 0 is success.
type NvrtcCode = u32;
type GetSize = unsafe extern "C" fn(Program, *mut usize) -> NvrtcCode;
type GetBytes = unsafe extern "C" fn(Program, *mut c_char) -> NvrtcCode;

// The types are those of nvrtc.h for these symbols, with nvrtcResult as u32.
cupti_sys::functions! {
    /// A loaded NVRTC.
    pub(crate) struct Table
    required {
        version = c"nvrtcVersion" (*mut c_int, *mut c_int);
        error_string = c"nvrtcGetErrorString" (NvrtcCode) -> *const c_char;
        create = c"nvrtcCreateProgram" (*mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char);
        destroy = c"nvrtcDestroyProgram" (*mut Program);
        compile = c"nvrtcCompileProgram" (Program, c_int, *const *const c_char);
        log_size = c"nvrtcGetProgramLogSize" (Program, *mut usize);
        log = c"nvrtcGetProgramLog" (Program, *mut c_char);
        cubin_size = c"nvrtcGetCUBINSize" (Program, *mut usize);
        cubin = c"nvrtcGetCUBIN" (Program, *mut c_char);
        ptx_size = c"nvrtcGetPTXSize" (Program, *mut usize);
        ptx = c"nvrtcGetPTX" (Program, *mut c_char);
        architectures_count = c"nvrtcGetNumSupportedArchs" (*mut c_int);
        architectures = c"nvrtcGetSupportedArchs" (*mut c_int);
    }
    optional {}
}

/// CUDA's newest major version that is known.
pub(crate) const NEWEST: u32 = 13;

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

impl Nvrtc {
    /// Finds and loads the NVRTC that fits the driver. That is one of the driver's own major version
    /// where there is one. Else it is an older one, whose code newer drivers load, else a newer one.
    ///
    /// # Errors
    /// When there is none, or none works.
    pub(crate) fn find(driver_major: u32) -> Result<Nvrtc, NoneFits> {
        let surroundings = Surroundings::of_this_process(&NVRTC);
        first_fit(&NVRTC, &surroundings, Some(driver_major), |library, it| {
            Nvrtc::load(library, &it.path)
        })
    }

    /// Makes something of a library that was opened from the file `given`.
    ///
    /// # Errors
    /// When it lacks a function or does not answer.
    pub(crate) fn load(library: Library, given: &Path) -> Result<Nvrtc, String> {
        // SAFETY: what is found under NVRTC's name is taken for it.
        let table = unsafe { Table::resolve(library) }
            .map_err(|symbol| format!("it has no function {symbol:?}"))?;
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
            return Err("it does not tell its version".to_owned());
        }
        let path = library.file_of(c"nvrtcVersion");
        let mut architectures: Vec<u32> =
            architectures.into_iter().map(c_int::unsigned_abs).collect();
        architectures.sort_unstable();
        let nvrtc = Nvrtc {
            table,
            version: (major.unsigned_abs(), minor.unsigned_abs()),
            architectures,
            path: path.unwrap_or_else(|| given.to_owned()),
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
            if file.exists() && Library::open(&file, Visibility::Local).is_ok() {
                return;
            }
        }
    }

    /// Compiles `source`, called `name` in messages.
    ///
    /// # Errors
    /// With NVRTC's log, when it has one.
    pub(crate) fn compile(
        &self,
        name: &str,
        source: &str,
        options: &[String],
        output: CodeKind,
    ) -> Result<Vec<u8>, String> {
        let text = |s: &str| CString::new(s).map_err(|_| "the source holds a NUL byte".to_owned());
        let (source, name) = (text(source)?, text(name)?);
        let options = options
            .iter()
            .map(|o| text(o))
            .collect::<Result<Vec<_>, _>>()?;
        let options: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        let mut program = Compilation {
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
            CodeKind::Cubin => program.read(self.table.cubin_size, self.table.cubin),
            CodeKind::Ptx => program.read(self.table.ptx_size, self.table.ptx),
        };
        image.map_err(|code| self.describe(code))
    }

    fn describe(&self, code: NvrtcCode) -> String {
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
pub(crate) enum CodeKind {
    /// Machine code for one architecture.
    Cubin,
    /// NvrtcCode that the driver translates when it loads it.
    Ptx,
}

/// A program inside NVRTC, destroyed when it goes out of scope.
struct Compilation<'a> {
    table: &'a Table,
    program: Program,
}

impl Compilation<'_> {
    fn read(&self, size: GetSize, get: GetBytes) -> Result<Vec<u8>, NvrtcCode> {
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

impl Drop for Compilation<'_> {
    fn drop(&mut self) {
        if !self.program.is_null() {
            // SAFETY: the program was created by this NVRTC and is destroyed once.
            unsafe {
                (self.table.destroy)(&mut self.program);
            }
        }
    }
}
