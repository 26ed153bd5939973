//! What the CUDA driver does in `cuInit` with the library that `CUDA_INJECTION64_PATH` names, by hand: to learn whether
//! it can be done here at all. The driver does it without a word, also when it fails.

use std::ffi::c_int;
use std::path::Path;

use crate::library::{Library, Visibility};

/// A library to be injected, loaded as the driver loads it.
#[derive(Clone, Copy, Debug)]
pub struct Injected {
    initialise: unsafe extern "C" fn() -> c_int,
}

impl Injected {
    /// Loads it. The driver's own loading finds it there afterwards, and does not load it again.
    ///
    /// # Errors
    /// The loader's own words; or that it is no library to be injected.
    pub fn load(path: &Path) -> Result<Injected, String> {
        let library = Library::open(path, Visibility::Local)?;
        // SAFETY: the type is the one that the driver calls it with.
        let found = unsafe { library.function(c"InitializeInjection") };
        let initialise = found.ok_or("it has no InitializeInjection")?;
        Ok(Injected { initialise })
    }

    /// Calls its `InitializeInjection`, where there is no driver to do it. Returns whether it says that it began.
    pub fn initialise(self) -> bool {
        // SAFETY: it is there to be called once a process, from any thread; the caller asked for just that.
        unsafe { (self.initialise)() == 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_injected_is_an_error_in_words() {
        let missing = Injected::load(Path::new("/nowhere/inject.so")).expect_err("not there");
        assert!(missing.contains("/nowhere/inject.so"), "{missing}");
        let other = Injected::load(Path::new("libm.so.6")).expect_err("it is something else");
        assert!(other.contains("InitializeInjection"), "{other}");
    }
}
