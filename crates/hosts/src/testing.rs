//! What tests and the fuzzer call of a link, without a machine at its other end.

use std::path::Path;

use super::frame::{Frames, decode, find_greeting};
use super::mirror::Mirror;

/// Writes what a machine sent into files of a folder, as a link does. Returns how many bytes arrived.
///
/// # Errors
/// Why a link would end.
pub fn receive(bytes: &[u8], root: &Path) -> Result<u64, String> {
    let mut mirror = Mirror::new(root.to_owned());
    let mut frames = Frames::default();
    // A greeting is looked for in what comes first; a frame begins behind it.
    frames.add(&bytes[find_greeting(bytes).map_or(0, |it| it.length)..]);
    loop {
        let payload = match frames.next() {
            Ok(Some(payload)) => payload,
            Ok(None) => return Ok(mirror.arrived()),
            Err(broken) => return Err(broken.to_string()),
        };
        let response = decode(payload).map_err(|broken| broken.to_string())?;
        mirror
            .take(response)
            .map_err(|refused| activity::text::printable(&refused.to_string()))?;
    }
}
