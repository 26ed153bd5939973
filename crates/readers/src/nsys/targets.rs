//! What an export tells about the machine and the programs: processes, threads, devices, streams.

use rustc_hash::FxHashMap;

use super::rows::RowReader;
use super::tables::{Tables, int, large, small, text};
use crate::gather::stream_id;
use activity::text::cut_middle;
use activity::{Def, DeviceInfo, Place, ProcessInfo, StreamInfo, Uuid, uuid_of};

/// Adds definitions for everything that the activities mention.
pub(super) fn describe(tables: &Tables, reader: &mut RowReader<'_>) -> rusqlite::Result<()> {
    processes(tables, reader)?;
    threads(tables, reader)?;
    devices(tables, reader)?;
    streams(tables, reader)
}

/// The system's id of the process that a global id belongs to.
fn pid_of(key: i64) -> u32 {
    (key & 0xff_ffff) as u32
}

/// What a report says of why no operation is in it: whether it was to trace CUDA, and what came in the way.
pub(super) fn why_none(tables: &Tables, has_calls: bool) -> String {
    let (mut is_asked, mut said) = (false, None);
    let asked = tables.each("META_DATA_CAPTURE", &["name", "value"], |row| {
        let is_it = || text(row, 0).ends_with(":COLLECT_CUDA_TRACE") && text(row, 1) == "true";
        is_asked = is_asked || is_it();
    });
    let columns = ["severity", "text"];
    let told = tables.each("DIAGNOSTIC_EVENT", &columns, |row| {
        let is_bad = int(row, 0).is_some_and(|it| it >= WARNING) && said.is_none();
        let text = if is_bad { text(row, 1) } else { String::new() };
        let is_of_cuda = text.contains("CUDA") || text.contains("CUPTI");
        let is_else = text.starts_with("No CUDA events") || text.contains("Unified Memory");
        if is_of_cuda && !is_else {
            said = text.lines().next().map(|it| cut_middle(it, SAID_MAX));
        }
    });
    // Without them less is said.
    let _ = (asked, told);
    match said {
        Some(said) => format!("; nsys says: {said}"),
        None if has_calls => String::new(),
        None if is_asked => {
            ", though nsys was told to trace CUDA: it saw no call of CUDA".to_owned()
        }
        None => ": was nsys told to trace CUDA?".to_owned(),
    }
}

/// A diagnostic event's severity from which on something went wrong, and the columns of it that are told.
const WARNING: i64 = 2;
const SAID_MAX: usize = 160;

fn processes(tables: &Tables, reader: &mut RowReader<'_>) -> rusqlite::Result<()> {
    let mut names: FxHashMap<i64, String> = FxHashMap::default();
    tables.each("PROCESSES", &["globalPid", "name"], |row| {
        if let Some(global) = int(row, 0) {
            names.insert(global >> 24, text(row, 1));
        }
    })?;
    let mut version = String::new();
    tables.each("META_DATA_EXPORT", &["name", "value"], |row| {
        if text(row, 0) == "EXPORT_PRODUCT_VERSION" {
            version = format!("Nsight Systems {}", text(row, 1));
        }
    })?;
    for (&key, &process) in &reader.processes {
        let info = ProcessInfo {
            pid: pid_of(key),
            command: names.get(&key).cloned().unwrap_or_default(),
            versions: version.clone(),
            ended_well: Some(true),
            ..ProcessInfo::default()
        };
        reader.gather.define(process, Def::Process(info));
    }
    Ok(())
}

fn threads(tables: &Tables, reader: &mut RowReader<'_>) -> rusqlite::Result<()> {
    let mut names: FxHashMap<i64, i64> = FxHashMap::default();
    tables.each("ThreadNames", &["globalTid", "nameId"], |row| {
        if let (Some(thread), Some(name)) = (int(row, 0), int(row, 1)) {
            names.insert(thread, name);
        }
    })?;
    let mut threads: Vec<_> = reader.threads.iter().copied().collect();
    threads.sort_unstable();
    for (process, global) in threads {
        if let Some(name) = names.get(&global)
            && let Some(name) = tables.string(*name)?
        {
            let thread = (global & 0xff_ffff) as u32;
            reader.gather.define(process, Def::Thread { thread, name });
        }
    }
    Ok(())
}

/// A GPU with its number in the export, and the one that CUDA gives it.
type Gpu = (i64, i64, DeviceInfo);

fn gpus(tables: &Tables) -> rusqlite::Result<Vec<Gpu>> {
    let mut gpus = Vec::new();
    let columns = "id cuDevice name uuid totalMemory memoryBandwidth clockRate smCount computeMajor computeMinor \
        asyncEngines maxWarpsPerSm maxBlocksPerSm maxShmemPerSm maxRegistersPerSm threadsPerWarp";
    let columns: Vec<&str> = columns.split(' ').collect();
    tables.each("TARGET_INFO_GPU", &columns, |row| {
        let info = DeviceInfo {
            uuid: uuid(&text(row, 3)),
            name: text(row, 2),
            capability: (small(row, 8), small(row, 9)),
            multiprocessors: small(row, 7),
            memory: large(row, 4),
            memory_bandwidth: large(row, 5),
            // The export has Hz.
            clock_khz: u32::try_from(large(row, 6) / 1000).unwrap_or(0),
            copy_engines: small(row, 10),
            max_warps_per_sm: small(row, 11),
            max_blocks_per_sm: small(row, 12),
            shared_per_sm: small(row, 13),
            registers_per_sm: small(row, 14),
            warp_size: small(row, 15),
            ..DeviceInfo::default()
        };
        let id = int(row, 0).unwrap_or(-1);
        gpus.push((id, int(row, 1).unwrap_or(id), info));
    })?;
    let mut alike: FxHashMap<String, u32> = FxHashMap::default();
    for (_, _, info) in &gpus {
        *alike.entry(info.name.clone()).or_default() += 1;
    }
    for (_, _, info) in &mut gpus {
        info.alike = alike[&info.name];
    }
    Ok(gpus)
}

fn devices(tables: &Tables, reader: &mut RowReader<'_>) -> rusqlite::Result<()> {
    let gpus = gpus(tables)?;
    // Which GPU a process means by an ordinal depends on its CUDA_VISIBLE_DEVICES.
    let mut seen_by: FxHashMap<(u32, u32), i64> = FxHashMap::default();
    tables.each(
        "TARGET_INFO_CUDA_DEVICE",
        &["gpuId", "cudaId", "pid"],
        |row| {
            if let Some(gpu) = int(row, 0) {
                seen_by.insert((small(row, 2), small(row, 1)), gpu);
            }
        },
    )?;
    for (&key, &process) in &reader.processes {
        for device in reader.gather.devices(process) {
            let known = match seen_by.get(&(pid_of(key), device)) {
                Some(gpu) => gpus.iter().find(|(id, _, _)| id == gpu),
                None => gpus.iter().find(|(_, cuda, _)| *cuda == i64::from(device)),
            };
            if let Some((_, _, info)) = known {
                let info = DeviceInfo {
                    id: device,
                    ..info.clone()
                };
                reader.gather.define(process, Def::Device(info));
            }
        }
    }
    Ok(())
}

fn streams(tables: &Tables, reader: &mut RowReader<'_>) -> rusqlite::Result<()> {
    type Key = (u32, u32, u32);
    let mut names: FxHashMap<Key, String> = FxHashMap::default();
    let columns = ["name", "processId", "contextId", "streamId"];
    tables.each("TARGET_INFO_NVTX_CUDA_STREAM", &columns, |row| {
        let stream = int(row, 3).map_or(0, stream_id);
        names.insert((small(row, 1), small(row, 2), stream), text(row, 0));
    })?;
    let mut kinds: FxHashMap<Key, (i32, i64)> = FxHashMap::default();
    let columns = ["streamId", "processId", "contextId", "priority", "flag"];
    tables.each("TARGET_INFO_CUDA_STREAM", &columns, |row| {
        let priority = int(row, 3).and_then(|p| i32::try_from(p).ok()).unwrap_or(0);
        let kind = (priority, int(row, 4).unwrap_or(0));
        let stream = int(row, 0).map_or(0, stream_id);
        kinds.insert((small(row, 1), small(row, 2), stream), kind);
    })?;
    let mut streams: Vec<_> = reader.streams.iter().copied().collect();
    streams.sort_unstable();
    let pids = reader.processes.iter().map(|(&key, &p)| (p, pid_of(key)));
    let pids: FxHashMap<u32, u32> = pids.collect();
    for (process, place) in streams {
        let pid = pids.get(&process).copied().unwrap_or(0);
        let key = (pid, place.context, place.stream);
        let name = match place.stream {
            Place::NO_STREAM => "managed memory".to_owned(),
            Place::PREFETCHED => "prefetched memory".to_owned(),
            Place::EVICTED => "evicted memory".to_owned(),
            _ => names.remove(&key).unwrap_or_default(),
        };
        let (priority, flag) = kinds.get(&key).copied().unwrap_or((0, 0));
        // CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL: the context's own stream.
        let is_default = flag == 3;
        if name.is_empty() && priority == 0 && !is_default {
            continue;
        }
        let stream = StreamInfo {
            name,
            priority,
            is_default,
            ..StreamInfo::at(place)
        };
        reader.gather.define(process, Def::Stream(stream));
    }
    Ok(())
}

/// "GPU-6a2c...": 32 hexadecimal digits, with dashes. Zeros stand where nobody recorded it: several GPUs may have them.
fn uuid(text: &str) -> Option<Uuid> {
    uuid_of(text).filter(|it| *it != Uuid::default())
}

#[cfg(test)]
mod tests {
    use super::uuid;

    #[test]
    fn zeros_are_no_identity() {
        let known = uuid("GPU-00000000-0000-0000-0000-00000000000a");
        assert_eq!(known.map(|it| it[15]), Some(10));
        assert_eq!(uuid("00000000-0000-0000-0000-000000000000"), None);
        assert_eq!(uuid("GPU-1"), None);
    }
}
