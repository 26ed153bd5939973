//! Finding kernel sources: beside the scenario, in its folder of kernels, or among the bundled ones.

use std::sync::Arc;

use activity::door;

use super::Source;
use super::diagnostics::{Diagnostic, Diagnostics, did_you_mean, instead, list, quoted};
use super::signature::{self, Entry};
use super::syntax::decl::KernelDecl;

/// Bytes of a kernel source.
const MAX_SOURCE: u64 = 1 << 20;

/// Gives each kernel its source and the parameters of its entry; reports what is missing.
pub(super) fn load(kernels: &mut [KernelDecl], place: &Source, diagnostics: &mut Diagnostics) {
    let mut read: Vec<(String, Option<Arc<str>>)> = Vec::new();
    for kernel in kernels {
        if kernel.file.text.is_empty() {
            continue;
        }
        let known = read.iter().find(|(name, _)| *name == kernel.file.text);
        let source = match known {
            Some((_, source)) => source.clone(),
            None => {
                let source = source(kernel, place, diagnostics);
                read.push((kernel.file.text.clone(), source.clone()));
                source
            }
        };
        if let Some(source) = source {
            kernel.code = code(kernel, source, diagnostics);
        }
    }
}

fn source(kernel: &KernelDecl, place: &Source, diagnostics: &mut Diagnostics) -> Option<Arc<str>> {
    let name = kernel.file.text.as_str();
    let folders = ["", "kernels", "../kernels"];
    let paths = place
        .kernel_dir
        .iter()
        .flat_map(|dir| folders.map(|it| dir.join(it).join(name)));
    for path in paths {
        if !path.is_file() {
            continue;
        }
        return match door::read_text(&path, MAX_SOURCE) {
            Ok(text) => Some(text.into()),
            Err(error) => {
                let path = quoted(&path.display().to_string());
                let message = format!("{path} cannot be read: {error}");
                diagnostics.push(Diagnostic::error(kernel.file.loc.range(), message));
                None
            }
        };
    }
    if let Some(text) = place.library.kernel(name) {
        return Some(text.into());
    }
    let bundled = || place.library.kernels.iter().map(|(file, _)| *file);
    let mut help = did_you_mean(name, bundled()).map_or_else(String::new, |it| it + " ");
    help += &format!("the bundled ones are {}; ", list(bundled()));
    help += "your own belong beside the scenario or in its kernels/";
    let message = format!("there is no kernel file {}", quoted(name));
    diagnostics.push(Diagnostic::error(kernel.file.loc.range(), message).help(help));
    None
}

fn code(
    kernel: &KernelDecl,
    source: Arc<str>,
    diagnostics: &mut Diagnostics,
) -> Option<(Arc<str>, Vec<signature::Param>)> {
    if kernel.entry.text.is_empty() {
        return None;
    }
    let entries = signature::entries(&source);
    if let Some(entry) = entries.iter().find(|entry| entry.name == kernel.entry.text) {
        return Some((source, entry.params.clone()));
    }
    let names = entries.iter().map(|entry: &Entry| entry.name.as_str());
    let help = instead(&kernel.entry.text, "its entries are", names);
    let message = format!(
        "{} has no extern \"C\" __global__ function {}",
        quoted(&kernel.file.text),
        quoted(&kernel.entry.text)
    );
    diagnostics.push(Diagnostic::error(kernel.entry.loc.range(), message).help(help));
    None
}
