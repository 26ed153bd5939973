//! Finding and loading CUDA's libraries at run time, libcupti's raw calls, and activity record layouts by library version.
//!
//! ```text
//! driver  libcuda: loaded and initialised before libcupti is touched
//! library any library that is opened at run time
//! search  where CUDA's libraries may lie, in which order, and which one fits
//! fit     opens the first that does
//! load    puts these together for libcupti: `Cupti::load`
//! api     the table of functions, result codes
//! kinds   record kinds and the numbers inside records
//! sizes   how long a record of each kind is in the library at hand
//! records fields at fixed offsets, only where the record is long enough
//! names   names of API functions by callback id
//! injection what the driver does with a library to be injected, by hand
//! pm      PM sampling: counters of a whole GPU, some hundred to 100,000 times a second
//! ```
//!
//! Result codes, kinds and every other number that the library hands out are plain integers with
//! named constants, never Rust enums. A newer library may return values that this crate has not
//! heard of, and an enum holding such a value is undefined behaviour.
//!
//! Sources: the `cupti_*.h` headers of CUDA 11.8 to 13.5 and measurements against the libraries of
//! these releases.

pub mod api;
pub mod driver;
pub mod fit;
pub mod injection;
pub mod kinds;
pub mod library;
pub mod load;
pub mod names;
pub mod pm;
pub mod records;
pub mod search;
pub mod sizes;
pub mod stalls;

pub use api::Api;
pub use load::{Caller, Cupti, LoadError};
pub use sizes::RecordSizes;
