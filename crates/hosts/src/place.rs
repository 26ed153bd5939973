//! `host:DIR` on the command line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A directory, or a recording, on another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What `ssh` connects to: a name, an address, an entry of its configuration, with or without a user's name before it.
    pub host: String,
    /// Its path there. A relative one begins at the user's home.
    pub path: PathBuf,
}

/// Whether a word may be a host's name or address: none that ssh could take for an option, or a shell for more.
pub fn is_host(word: &str) -> bool {
    let may = |c: char| c.is_alphanumeric() || "._-@:%".contains(c);
    word.len() > 1 && !word.starts_with('-') && word.chars().all(may)
}

impl Place {
    /// The place that a word names; `None` for a file of this machine. An existing file goes before a host. One letter
    /// before the colon is a drive of another system. Two slashes behind it begin an address of the web.
    pub fn parse(word: &Path) -> Option<Place> {
        if word.symlink_metadata().is_ok() {
            return None;
        }
        let bytes = word.as_os_str().as_bytes();
        let (host, path) = match bytes.strip_prefix(b"[") {
            // An address with colons of its own.
            Some(rest) => {
                let end = rest.iter().position(|byte| *byte == b']')?;
                (&rest[..end], rest[end + 1..].strip_prefix(b":")?)
            }
            None => {
                let colon = bytes.iter().position(|byte| *byte == b':')?;
                (&bytes[..colon], &bytes[colon + 1..])
            }
        };
        let host = std::str::from_utf8(host).ok()?;
        // A word that no host is called stays a file's name.
        if !is_host(host) || path.is_empty() || path.starts_with(b"//") {
            return None;
        }
        Some(Place {
            host: host.to_owned(),
            path: PathBuf::from(OsString::from(OsStr::from_bytes(path))),
        })
    }

    /// The place as the user named it.
    pub fn name(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.path.display()),
            false => format!("{}:{}", self.host, self.path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_a_colon_is_a_host_unless_it_is_something_else() {
        let parsed = |word: &str| {
            let place = Place::parse(Path::new(word))?;
            Some((place.host, place.path.display().to_string()))
        };
        for (word, host, path) in [
            ("host1:runs", "host1", "runs"),
            (
                "me@gpu01.example.org:/scratch/a b",
                "me@gpu01.example.org",
                "/scratch/a b",
            ),
            ("host1:~/runs:2", "host1", "~/runs:2"),
            ("[fe80::1%eth0]:runs", "fe80::1%eth0", "runs"),
            ("192.168.0.7:x", "192.168.0.7", "x"),
        ] {
            assert_eq!(
                parsed(word),
                Some((host.to_owned(), path.to_owned())),
                "{word}"
            );
        }
        for word in [
            "runs",
            "C:runs",
            "C:\\runs",
            "host1:",
            ":runs",
            "./a:b",
            "dir/a:b",
            "-oProxyCommand=x:y",
            "http://x/y",
            "a b:c",
            "a;b:c",
            "$(x):y",
            "[::1]runs",
            "[::1:x",
        ] {
            assert_eq!(parsed(word), None, "{word}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("host1:runs");
        std::fs::write(&file, "").expect("written");
        assert_eq!(Place::parse(&file), None);
    }
}
