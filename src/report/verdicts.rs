//! What bounds the run: the first thing in a report.

use super::page::{Page, Tone};
use super::ranks::tells;
use super::{Report, VariantReport};
use activity::text::printable;
use causes::Bound;

/// The verdict of each variant, or those of the whole timeline and its devices.
pub(super) fn section(page: &mut Page, report: &Report) {
    match report.variants.as_deref() {
        Some(variants) if !variants.is_empty() => of_variants(page, variants),
        _ => of_devices(page, report),
    }
}

fn of_devices(page: &mut Page, report: &Report) {
    // Of one device the whole says the same.
    let (whole, each) = match report.verdicts.as_slice() {
        [whole, _] => (Some(whole), &[][..]),
        [whole, each @ ..] => (Some(whole), each),
        [] => (None, &[][..]),
    };
    let each = each.iter().zip(&report.devices);
    let each = each.filter(|(_, it)| tells(report, |rank| rank.device_index == it.index));
    for verdict in whole.into_iter().chain(each.map(|(verdict, _)| verdict)) {
        if let Some(distorted) = &verdict.distorted {
            page.wrapped(distorted);
        }
        page.painted(Tone::Title, &verdict.line());
        for detail in verdict.details() {
            page.wrapped(&detail);
        }
    }
}

/// Points of a sweep that follow each other and are bound by the same stand in one line, that of the last.
fn of_variants(page: &mut Page, variants: &[VariantReport]) {
    let variants: Vec<&VariantReport> = super::runs::shown(page, variants).collect();
    let mut at = 0;
    while let Some(first) = variants.get(at) {
        let bound = |v: &VariantReport| v.verdicts.first().map(|verdict| verdict.bound_by);
        let is_same = |v: &&&VariantReport| {
            v.figures.variant.name == first.figures.variant.name && bound(v) == bound(first)
        };
        let count = variants[at..].iter().take_while(is_same).count();
        let last = &variants[at + count - 1];
        at += count;
        let Some(verdict) = last.verdicts.first() else {
            continue;
        };
        let name = match count {
            1 => first.figures.label(),
            _ => format!("{} to {}", first.figures.label(), last.figures.label()),
        };
        page.painted(
            Tone::Title,
            &format!("{}: {}", printable(&name), verdict.headline()),
        );
        if let Some(beside) = verdict
            .beside
            .first()
            .filter(|_| count == 1 && verdict.bound_by != Bound::Nothing)
        {
            page.wrapped(beside);
        }
    }
}
