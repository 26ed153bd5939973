//! What helps against what the loader says.

use std::path::Path;

/// What would help, for the loader's words; empty where nothing is known to. The words are those of glibc's `ld.so`.
pub(super) fn help(said: &str, library: &Path) -> String {
    let is_denied = ["Operation not permitted", "Permission denied"]
        .iter()
        .any(|word| said.contains(word));
    if said.contains("GLIBC_") {
        return "the C library here is older than the one that this cuptop was built for: take the release's tarball, which needs \
                glibc 2.17, or build cuptop on this machine"
            .to_owned();
    }
    if !is_denied {
        return String::new();
    }
    let folder = library.parent().unwrap_or(library).display();
    format!(
        "{folder} holds no programs that may be run (mounted noexec, or a security module as SELinux): set XDG_CACHE_HOME to a \
         folder that does"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_words_have_their_cures() {
        let library = Path::new("/home/me/.cache/cuptop/inject.so");
        // As glibc 2.31 and 2.36 were seen to say it.
        let old = "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by /x/inject.so)";
        assert!(help(old, library).contains("glibc 2.17"));
        let noexec =
            "/x/inject.so: failed to map segment from shared object: Operation not permitted";
        assert!(help(noexec, library).contains("noexec"));
        let denied = "/x/inject.so: failed to map segment from shared object: Permission denied";
        assert!(help(denied, library).contains("SELinux"));
        let missing = "/x/inject.so: cannot open shared object file: No such file or directory";
        assert_eq!(help(missing, library), "");
    }
}
