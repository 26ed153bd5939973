//! What the numbers in an export mean.
//!
//! The kinds of memory are NOT numbered as in CUPTI. There 0 is unknown, 1 pageable, 2 pinned; here 0 is pageable, 1
//! pinned, 2 device. Each export carries tables of its enumerations, and these count. The numbers below stand in where
//! a table is missing (schema 3.25.0, Nsight Systems 2026.2).

use rustc_hash::FxHashMap;

use super::tables::Tables;
use crate::gather;
use activity::{Direction, MemoryAction, MemoryKind};

/// The enumerations of one export.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    memory: FxHashMap<i64, String>,
    copy: FxHashMap<i64, String>,
    action: FxHashMap<i64, String>,
    overhead: FxHashMap<i64, String>,
}

impl Kinds {
    /// Reads the enumerations of an export.
    pub(super) fn of(tables: &Tables) -> rusqlite::Result<Kinds> {
        // Where a table is missing, names in the order of their numbers.
        let or = |table: &str, names: &str| -> rusqlite::Result<FxHashMap<i64, String>> {
            let known = tables.names(table)?;
            let names = || names.split_ascii_whitespace().map(str::to_owned);
            Ok(match known.is_empty() {
                true => (0..).zip(names()).collect(),
                false => known,
            })
        };
        Ok(Kinds {
            memory: or(
                "ENUM_CUDA_MEM_KIND",
                "KIND_PAGEABLE KIND_PINNED KIND_DEVICE KIND_ARRAY KIND_MANAGED KIND_DEVICE_STATIC \
                 KIND_MANAGED_STATIC KIND_UNKNOWN",
            )?,
            copy: or(
                "ENUM_CUDA_MEMCPY_OPER",
                "KIND_UNKNOWN KIND_HTOD KIND_DTOH KIND_HTOA KIND_ATOH KIND_ATOA KIND_ATOD KIND_DTOA \
                 KIND_DTOD KIND_HTOH KIND_PTOP KIND_UVM_HTOD KIND_UVM_DTOH KIND_UVM_DTOD",
            )?,
            action: or(
                "ENUM_CUDA_DEV_MEM_EVENT_OPER",
                "OPR_ALLOCATION OPR_DEALLOCATION",
            )?,
            overhead: tables.names("ENUM_CUPTI_OVERHEAD_TYPE")?,
        })
    }

    /// The kind of memory.
    pub(super) fn memory(&self, id: Option<i64>) -> MemoryKind {
        let name = id.and_then(|id| self.memory.get(&id));
        MemoryKind::named(after(name, "KIND_"))
    }

    /// The direction of a copy, and whether it is the driver's own migration of managed memory.
    pub(super) fn direction(&self, id: Option<i64>) -> (Direction, bool) {
        let name = after(id.and_then(|id| self.copy.get(&id)), "KIND_");
        let migrated = name.strip_prefix("UVM_");
        let direction = gather::direction(migrated.unwrap_or(name));
        (direction.unwrap_or(Direction::Other), migrated.is_some())
    }

    /// Whether memory was allocated or freed; `None` for anything else.
    pub(super) fn action(&self, id: Option<i64>) -> Option<MemoryAction> {
        let name = id.and_then(|id| self.action.get(&id));
        match after(name, "OPR_") {
            "ALLOCATION" => Some(MemoryAction::Alloc),
            "DEALLOCATION" => Some(MemoryAction::Free),
            _ => None,
        }
    }

    /// What an overhead was for: "lazy function loading".
    pub(super) fn overhead(&self, id: Option<i64>) -> Option<String> {
        let name = id.and_then(|id| self.overhead.get(&id));
        let name = after(name, "OVERHEAD_");
        (!name.is_empty()).then(|| name.to_lowercase().replace('_', " "))
    }
}

/// "PINNED" of "CUDA_MEMOPR_MEMORY_KIND_PINNED".
fn after<'a>(name: Option<&'a String>, mark: &str) -> &'a str {
    name.and_then(|name| name.split_once(mark))
        .map_or("", |(_, rest)| rest)
}
