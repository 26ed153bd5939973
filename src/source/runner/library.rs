//! Shared libraries that are opened by name at run time, and the functions in them.
//!
//! cuptop links no CUDA library: a machine without one must still run the simulator. A library that
//! was opened is never closed, because CUDA's libraries keep threads and exit handlers of their own.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr::NonNull;

/// A loaded library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Library(NonNull<c_void>);

impl Library {
    /// Opens the library at `path`, or, when that has no slash, the one that the system's loader finds
    /// under the name. Its symbols stay local unless `is_global`.
    ///
    /// # Errors
    /// The loader's own words.
    #[expect(unsafe_code, reason = "dlopen is how a library is loaded at run time")]
    pub(crate) fn open(path: &Path, is_global: bool) -> Result<Library, String> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| "the path holds a NUL byte".to_owned())?;
        let visibility = if is_global {
            libc::RTLD_GLOBAL
        } else {
            libc::RTLD_LOCAL
        };
        // SAFETY: `name` is a NUL-terminated string. The library's initialisers run; opening a CUDA
        // library is what the caller asked for, and these are written to be opened this way.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | visibility) };
        NonNull::new(handle).map(Library).ok_or_else(last_error)
    }

    /// The address of a function.
    ///
    /// # Safety
    /// `F` must be the function pointer type that the library gives `symbol`.
    #[expect(unsafe_code, reason = "dlsym is how a symbol is looked up at run time")]
    pub(crate) unsafe fn function<F: Copy>(self, symbol: &CStr) -> Option<F> {
        const {
            assert!(size_of::<F>() == size_of::<*mut c_void>());
        }
        // SAFETY: the handle is open (it is never closed) and the name is NUL-terminated.
        let address = unsafe { libc::dlsym(self.0.as_ptr(), symbol.as_ptr()) };
        if address.is_null() {
            return None;
        }
        // SAFETY: `F` is as large as a pointer (asserted above), and the caller vouches for the type.
        Some(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
    }

    /// The file that the function at `address` was loaded from.
    #[expect(
        unsafe_code,
        reason = "dladdr is how a loaded library's path is asked for"
    )]
    pub(crate) fn path_of(address: *const c_void) -> Option<std::path::PathBuf> {
        // SAFETY: all fields of Dl_info are pointers, for which zero is valid.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: dladdr takes any address and only writes to `info`.
        if unsafe { libc::dladdr(address, &mut info) } == 0 || info.dli_fname.is_null() {
            return None;
        }
        // SAFETY: dladdr succeeded, so the name is a NUL-terminated string that lives as long as the
        // library, which is for ever.
        let name = unsafe { CStr::from_ptr(info.dli_fname) };
        Some(std::ffi::OsStr::from_bytes(name.to_bytes()).into())
    }
}

#[expect(unsafe_code, reason = "dlerror is where the loader leaves its message")]
fn last_error() -> String {
    // SAFETY: dlerror returns null or a NUL-terminated string that stays valid until the next dl* call
    // of this thread; it is copied at once.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            "unknown error".to_owned()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_an_error_in_words() {
        let error = Library::open(Path::new("/nowhere/libcuptop-missing.so"), false)
            .expect_err("nothing there");
        assert!(error.contains("libcuptop-missing.so"), "{error}");
    }

    #[test]
    #[expect(unsafe_code, reason = "calls a function of the C library")]
    fn a_function_of_the_c_library_is_found_and_works() {
        let library = Library::open(Path::new("libc.so.6"), false).expect("the C library");
        // SAFETY: this is abs's type in the C standard.
        let abs = unsafe { library.function::<unsafe extern "C" fn(i32) -> i32>(c"abs") };
        // SAFETY: abs is defined for -3.
        assert_eq!(abs.map(|abs| unsafe { abs(-3) }), Some(3));
        // SAFETY: never called.
        let missing =
            unsafe { library.function::<unsafe extern "C" fn()>(c"cuptop_no_such_symbol") };
        assert!(missing.is_none());
    }
}
