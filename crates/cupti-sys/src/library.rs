//! Libraries that are opened at run time, and the functions in them.
//!
//! cuptop links no CUDA library: a machine without one must still run the simulator. A library that was opened is never
//! closed, because CUDA's libraries keep threads, callbacks and exit handlers of their own.

use std::error::Error as _;
use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library as Opened, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};

/// Who sees a library's symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Whoever looks them up in it.
    Local,
    /// Every library that is opened later, as if the program linked it.
    Global,
}

/// A loaded library.
#[derive(Clone, Copy, Debug)]
pub struct Library(&'static Opened);

impl Library {
    /// Opens the library at `path`, or, when that has no slash, the one that the system's loader finds under the name.
    ///
    /// # Errors
    /// The loader's own words.
    pub fn open(path: &Path, visibility: Visibility) -> Result<Library, String> {
        let visibility = match visibility {
            Visibility::Local => RTLD_LOCAL,
            Visibility::Global => RTLD_GLOBAL,
        };
        // SAFETY: the library's initialisers run; opening a CUDA library is what the caller asked for, and these are
        // written to be opened this way. A file that is open already is found again, not opened twice.
        unsafe { Opened::open(Some(path), RTLD_NOW | visibility) }
            // What is leaked is never dropped, hence never closed.
            .map(|opened| Library(Box::leak(Box::new(opened))))
            .map_err(|error| {
                error
                    .source()
                    .map_or_else(|| error.to_string(), ToString::to_string)
            })
    }

    /// The library that this process has loaded under this name, if it has.
    pub fn loaded(name: &Path) -> Option<Library> {
        // SAFETY: nothing is loaded, so nothing of it runs.
        let found = unsafe { Opened::open(Some(name), RTLD_NOW | libc::RTLD_NOLOAD) };
        found
            .ok()
            .map(|opened| Library(Box::leak(Box::new(opened))))
    }

    /// A function of the library; nothing where it has none of that name.
    ///
    /// # Safety
    /// `F` must be the function pointer type that the library gives `symbol`.
    pub unsafe fn function<F: Copy>(self, symbol: &CStr) -> Option<F> {
        // SAFETY: the caller vouches for the type, and a pointer that may be null is an `Option` of it.
        let found = unsafe { self.0.get::<Option<F>>(symbol) }.ok()?;
        found.lift_option().map(|function| *function)
    }

    /// The file that a function of the library was loaded from.
    pub fn file_of(self, symbol: &CStr) -> Option<PathBuf> {
        // SAFETY: whatever the function's type is, it is not called.
        let function = unsafe { self.function::<unsafe extern "C" fn()>(symbol) }?;
        // SAFETY: all fields of Dl_info are pointers, for which zero is valid.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: dladdr takes any address, does not read what is there, and only writes to `info`.
        let found = unsafe { libc::dladdr(function as *const c_void, &raw mut info) };
        if found == 0 || info.dli_fname.is_null() {
            return None;
        }
        // SAFETY: dladdr succeeded, so the name is a NUL-terminated string that lives as long as the library, which is
        // for ever.
        let name = unsafe { CStr::from_ptr(info.dli_fname) };
        Some(OsStr::from_bytes(name.to_bytes()).into())
    }
}

/// Makes a table of a library's functions: each with its name here, its symbol and the types of its arguments. It
/// returns a code (u32) where no other type is named.
#[macro_export]
macro_rules! functions {
    (
        $(#[$meta:meta])* $vis:vis struct $table:ident
        required { $($(#[$doc:meta])* $name:ident = $symbol:literal ($($arg:ty),*) $(-> $result:ty)?;)* }
        optional { $($(#[$odoc:meta])* $oname:ident = $osymbol:literal ($($oarg:ty),*);)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        $vis struct $table {
            $($(#[$doc])* $vis $name: unsafe extern "C" fn($($arg),*) -> $crate::result!($($result)?),)*
            $($(#[$odoc])* $vis $oname: Option<unsafe extern "C" fn($($oarg),*) -> u32>,)*
        }

        impl $table {
            /// Looks the functions up.
            ///
            /// # Errors
            /// The name of a required function that the library does not export.
            ///
            /// # Safety
            /// `library` must be the one that gives these symbols these types, or answer like it.
            $vis unsafe fn resolve(
                library: $crate::library::Library,
            ) -> Result<$table, &'static ::std::ffi::CStr> {
                Ok($table {
                    $($name: {
                        let symbol = $symbol;
                        // SAFETY: the caller's promise. A `Library` is never closed, so the functions stay.
                        unsafe { library.function(symbol) }.ok_or(symbol)?
                    },)*
                    $($oname: {
                        let symbol = $osymbol;
                        // SAFETY: as above.
                        unsafe { library.function(symbol) }
                    },)*
                })
            }
        }
    };
}

/// What a function of a table returns.
#[doc(hidden)]
#[macro_export]
macro_rules! result {
    () => {
        u32
    };
    ($type:ty) => {
        $type
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_an_error_in_words() {
        let path = Path::new("/nowhere/libcuptop-missing.so");
        let error = Library::open(path, Visibility::Local).expect_err("nothing there");
        assert!(error.contains("libcuptop-missing.so"), "{error}");
    }

    #[test]
    fn a_function_of_the_c_library_is_found_and_works() {
        let library = Library::open(Path::new("libc.so.6"), Visibility::Local).expect("there");
        // SAFETY: this is abs's type in the C standard.
        let abs = unsafe { library.function::<unsafe extern "C" fn(i32) -> i32>(c"abs") };
        // SAFETY: abs is defined for -3.
        assert_eq!(abs.map(|abs| unsafe { abs(-3) }), Some(3));
        let path = library.file_of(c"abs").expect("a file");
        assert!(path.ends_with("libc.so.6"), "{}", path.display());
        // SAFETY: never called.
        let missing =
            unsafe { library.function::<unsafe extern "C" fn()>(c"cuptop_no_such_symbol") };
        assert!(missing.is_none());
    }
}
