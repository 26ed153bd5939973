//! The limit on processor time of a process's control group: how often it stopped the process.

use std::fs;
use std::path::{Path, PathBuf};

use recording::file::Clocks;

use activity::{GroupWindow, Ns, Span};

/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";
/// Where version 1 has those of the processor.
const V1: [&str; 2] = ["cpu", "cpu,cpuacct"];

/// What a group has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GroupCounts {
    periods: u64,
    throttled_periods: u64,
    throttled: Ns,
}

/// The nearest group around a process that has a limit.
pub(super) struct Group {
    folder: Option<PathBuf>,
    cores: f64,
    before: Option<(Ns, GroupCounts)>,
}

impl Group {
    /// That of a process, as it is now.
    pub(super) fn of(pid: u32) -> Group {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let folder = folders(Path::new(MOUNT), &text)
            .into_iter()
            .find(|folder| cores(folder).is_some());
        Group {
            cores: folder.as_deref().and_then(cores).unwrap_or(0.0),
            folder,
            before: None,
        }
    }

    /// What happened since the last look. `None` where there is no limit, or no period of it ended.
    pub(super) fn read(&mut self) -> Option<GroupWindow> {
        let folder = self.folder.as_ref()?;
        let counted = parse(&fs::read_to_string(folder.join("cpu.stat")).ok()?)?;
        let now = Clocks::now().realtime;
        if let Some((_, was)) = self.before
            && was.periods == counted.periods
        {
            return None;
        }
        let (then, was) = self.before.replace((now, counted))?;
        Some(GroupWindow {
            span: Span::new(then, now),
            periods: counted.periods.checked_sub(was.periods)?,
            throttled_periods: counted
                .throttled_periods
                .checked_sub(was.throttled_periods)?,
            throttled: (counted.throttled - was.throttled).max(0),
            cores: self.cores,
        })
    }
}

/// The folders of a process's groups, innermost first, as far as they are in sight. In a container the path is often that of
/// the host, and the container's own group is mounted at the top.
fn folders(mount: &Path, text: &str) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let roots: Vec<PathBuf> = if controllers.is_empty() {
            vec![mount.to_path_buf()]
        } else if controllers.split(',').any(|it| it == "cpu") {
            V1.iter().map(|it| mount.join(it)).collect()
        } else {
            continue;
        };
        for root in roots {
            let inner = Path::new(path.trim_start_matches('/'));
            for ancestor in inner.ancestors() {
                let folder = root.join(ancestor);
                if !all.contains(&folder) && folder.join("cpu.stat").is_file() {
                    all.push(folder);
                }
            }
        }
    }
    all
}

/// Processors' worth of time that a group may use: `cpu.max` of version 2, quota and period of version 1. `None` for no limit.
fn cores(folder: &Path) -> Option<f64> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let (quota, period) = match read("cpu.max") {
        Some(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?)
        }
        None => {
            let number = |name| read(name)?.trim().parse::<f64>().ok();
            (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
        }
    };
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// `cpu.stat` of either version: version 2 has microseconds, version 1 nanoseconds.
fn parse(text: &str) -> Option<GroupCounts> {
    let field = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix(' ')?
                .trim()
                .parse::<u64>()
                .ok()
        })
    };
    let throttled = match field("throttled_usec") {
        Some(us) => us.checked_mul(1000)?,
        None => field("throttled_time")?,
    };
    Some(GroupCounts {
        periods: field("nr_periods")?,
        throttled_periods: field("nr_throttled")?,
        throttled: Ns::try_from(throttled).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        root
    }

    fn limited(root: &Path, text: &str) -> Group {
        let folder = folders(root, text)
            .into_iter()
            .find(|it| cores(it).is_some());
        Group {
            cores: folder.as_deref().and_then(cores).unwrap_or(0.0),
            folder,
            before: None,
        }
    }

    #[test]
    fn the_nearest_limit_of_version_2_is_found_and_read() {
        let stat = "usage_usec 5\nnr_periods 100\nnr_throttled 40\nthrottled_usec 2500000\n";
        let root = made(&[
            ("pod/box/cpu.stat", stat),
            ("pod/box/cpu.max", "max 100000\n"),
            ("pod/cpu.stat", stat),
            ("pod/cpu.max", "150000 100000\n"),
            ("cpu.stat", "usage_usec 5\n"),
        ]);
        let mut group = limited(root.path(), "0::/pod/box\n");
        assert_eq!(group.folder, Some(root.path().join("pod")));
        assert_eq!(group.read(), None);
        let later = "nr_periods 110\nnr_throttled 45\nthrottled_usec 3000000\n";
        fs::write(root.path().join("pod/cpu.stat"), later).expect("written");
        let found = group.read().expect("a window");
        assert_eq!((found.periods, found.throttled_periods), (10, 5));
        // Half a second, of one and a half processors.
        assert_eq!((found.throttled, found.cores), (500_000_000, 1.5));
        assert_eq!(group.read(), None);
    }

    #[test]
    fn version_1_counts_nanoseconds_and_a_container_sees_its_group_at_the_top() {
        let root = made(&[
            (
                "cpu/cpu.stat",
                "nr_periods 7\nnr_throttled 3\nthrottled_time 900\n",
            ),
            ("cpu/cpu.cfs_quota_us", "200000\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        let text = "12:memory:/docker/ab\n4:cpu,cpuacct:/docker/ab\n1:name=systemd:/docker/ab\n";
        let group = limited(root.path(), text);
        assert_eq!(group.folder, Some(root.path().join("cpu")));
        assert_eq!(group.cores, 2.0);
        let read = parse(&fs::read_to_string(root.path().join("cpu/cpu.stat")).expect("there"));
        assert_eq!(read.map(|it| it.throttled), Some(900));
        fs::write(root.path().join("cpu/cpu.cfs_quota_us"), "-1\n").expect("written");
        assert_eq!(limited(root.path(), text).folder, None);
    }
}
