//! Opening the first library of [`crate::search`] that is fit for use.

use std::fmt;
use std::path::PathBuf;

use crate::library::{Library, Visibility};
use crate::search::{Candidate, Surroundings, Wanted, Why};

/// A library that was looked at and not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Where it lies.
    pub path: PathBuf,
    /// Why not.
    pub reason: String,
}

/// None of those found is fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoneFits {
    /// What was looked for.
    pub wanted: &'static Wanted,
    /// What was looked at and why it was not taken.
    pub rejected: Vec<Rejected>,
    /// Directories that were searched.
    pub searched: usize,
}

impl fmt::Display for NoneFits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stem, searched) = (self.wanted.stem, self.searched);
        if self.rejected.is_empty() {
            return write!(
                f,
                "no {stem} was found ({searched} directories were searched)"
            );
        }
        write!(f, "no usable {stem}")?;
        for (index, it) in self.rejected.iter().enumerate() {
            let mark = if index == 0 { ':' } else { ';' };
            write!(f, "{mark} {}: {}", it.path.display(), it.reason)?;
        }
        Ok(())
    }
}

impl std::error::Error for NoneFits {}

/// Opens the candidates in the order in which they fit a driver of CUDA's major version `driver`. It gives the first
/// that `take` makes something of.
///
/// # Errors
/// When there is none; says what was tried.
pub fn first_fit<T>(
    wanted: &'static Wanted,
    surroundings: &Surroundings,
    driver: Option<u32>,
    take: impl Fn(Library, &Candidate) -> Result<T, String>,
) -> Result<T, NoneFits> {
    let mut rejected = Vec::new();
    for candidate in wanted.in_order_of_fit(surroundings.candidates(wanted), driver) {
        let opened = Library::open(&candidate.path, Visibility::Local);
        if candidate.why == Why::Loader && opened.is_err() {
            // The loader knows no such name, which is no news.
            continue;
        }
        match opened.and_then(|library| take(library, &candidate)) {
            Ok(taken) => return Ok(taken),
            Err(reason) => rejected.push(Rejected {
                path: candidate.path,
                reason,
            }),
        }
        if candidate.why == Why::Mapped {
            // A second copy in this process would be two state machines over one driver.
            break;
        }
    }
    if let Some(path) = surroundings.chosen.clone().filter(|_| rejected.is_empty()) {
        let reason = format!(
            "{} names it, and it is not the absolute path of a file",
            wanted.variable
        );
        rejected.push(Rejected { path, reason });
    }
    Err(NoneFits {
        wanted,
        rejected,
        searched: surroundings.directories(wanted).len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{CUPTI, NVRTC};

    #[test]
    fn the_error_names_what_was_tried() {
        let rejected = |path: &str, reason: &str| Rejected {
            path: path.into(),
            reason: reason.to_owned(),
        };
        let mut error = NoneFits {
            wanted: &CUPTI,
            rejected: vec![
                rejected("/x/libcupti.so.13", "too new"),
                rejected("/y/libcupti.so", "no ELF file"),
            ],
            searched: 4,
        };
        assert_eq!(
            error.to_string(),
            "no usable libcupti: /x/libcupti.so.13: too new; /y/libcupti.so: no ELF file"
        );
        error.rejected.clear();
        let text = "no libcupti was found (4 directories were searched)";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn a_file_that_is_no_library_is_passed_over_and_named() {
        let root = tempfile::tempdir().expect("a directory");
        let broken = root.path().join("libnvrtc.so.13");
        std::fs::write(&broken, "no ELF file").expect("written");
        // The library of mathematics stands for one that loads.
        let good = root.path().join("lib64/libnvrtc.so.12");
        let maths = Library::open("libm.so.6".as_ref(), Visibility::Local).expect("there");
        let file = maths.file_of(c"cos").expect("its file");
        std::fs::create_dir(root.path().join("lib64")).expect("made");
        std::fs::copy(file, &good).expect("copied");
        let surroundings = Surroundings {
            system: vec![root.path().into(), root.path().join("lib64")],
            ..Surroundings::default()
        };
        let find = |is_fit: bool| {
            first_fit(&NVRTC, &surroundings, Some(13), |_, it| {
                let path = it.path.clone();
                is_fit.then_some(path).ok_or_else(|| "unfit".to_owned())
            })
        };
        assert_eq!(find(true), Ok(good.clone()));
        let error = find(false).expect_err("none fits");
        let paths: Vec<&PathBuf> = error.rejected.iter().map(|it| &it.path).collect();
        assert_eq!(paths, [&broken, &good]);
        assert_eq!(error.rejected[1].reason, "unfit");
        let named = Surroundings {
            chosen: Some("libnvrtc.so.13".into()),
            ..surroundings
        };
        let error = first_fit(&NVRTC, &named, None, |_, _| Ok(())).expect_err("no path");
        assert_eq!(
            error.to_string(),
            "no usable libnvrtc: libnvrtc.so.13: CUPTOP_NVRTC names it, and it is not the absolute path of a file"
        );
    }
}
