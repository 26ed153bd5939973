//! Sockets by their owners.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The state of a socket that listens, in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// Where a process listens for TCP.
pub(super) fn listeners(pid: u32) -> Vec<SocketAddr> {
    let own = sockets(pid);
    if own.is_empty() {
        return Vec::new();
    }
    let tables = ["tcp", "tcp6"].map(|it| std::fs::read_to_string(format!("/proc/{pid}/net/{it}")));
    let lines: Vec<String> = tables.into_iter().flatten().collect();
    let all = lines.iter().flat_map(|it| it.lines()).filter_map(listener);
    all.filter(|it| own.contains(&it.1))
        .map(|it| it.0)
        .collect()
}

/// The sockets that a process has open, by inode.
fn sockets(pid: u32) -> BTreeSet<u64> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd"));
    let links = files
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|it| std::fs::read_link(it.path()).ok());
    let inode = |link: std::path::PathBuf| {
        link.to_str()?
            .strip_prefix("socket:[")?
            .strip_suffix(']')?
            .parse()
            .ok()
    };
    links.filter_map(inode).collect()
}

/// The address and the inode of a line of `/proc/net/tcp` or `tcp6`, where it listens.
fn listener(line: &str) -> Option<(SocketAddr, u64)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    if *fields.get(3)? != LISTEN {
        return None;
    }
    let (address, port) = fields.get(1)?.split_once(':')?;
    // Words of four bytes, each in the machine's order.
    let words = address.as_bytes().chunks(8).map(|it| {
        let text = std::str::from_utf8(it).ok()?;
        Some(u32::from_str_radix(text, 16).ok()?.to_ne_bytes())
    });
    let bytes = words.collect::<Option<Vec<[u8; 4]>>>()?.concat();
    let address = match <[u8; 16]>::try_from(bytes.as_slice()) {
        Ok(six) => IpAddr::V6(Ipv6Addr::from(six)),
        Err(_) => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes.as_slice()).ok()?)),
    };
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((SocketAddr::new(address, port), fields.get(9)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_this_process_listens_on_are_found() {
        let four = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = four.local_addr().expect("an address");
        assert!(listeners(std::process::id()).contains(&at));
        if let Ok(six) = std::net::TcpListener::bind("[::1]:0") {
            let at = six.local_addr().expect("an address");
            assert!(listeners(std::process::id()).contains(&at));
        }
        drop(four);
        assert!(!listeners(std::process::id()).contains(&at));
        for wrong in [
            "",
            "0: x:y 0:0 0A",
            "0: 0100007F:1F90 00000000:0000 01 0 0 0 0 0 5",
        ] {
            assert_eq!(listener(wrong), None, "{wrong}");
        }
    }
}
