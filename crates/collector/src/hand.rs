//! What cuptop and a collector that was loaded into a running program say to each other. Messages go through a
//! socket (`SOCK_SEQPACKET`), of which each has one end. Whoever loses the other's end lets go.

/// The function that is called in the program.
pub const ENTRY: &str = "cuptop_attach_1";
/// The variable in which it keeps the memory of the call for the next one.
pub const AREA: &str = "cuptop_area";
/// How the thread is called that serves whoever is attached, by its number. Threads that CUPTI starts from it inherit the name and
/// stay: only whose name has its own number serves.
pub fn thread_name(number: u32) -> String {
    format!("cuptop-{number}")
}
/// The longest message.
pub const LONGEST: usize = 16 * 1024;

/// What [`ENTRY`] returns when nothing begins.
pub const BUSY: i32 = -1;
/// The process was forked from one that was attached to.
pub const CHILD: i32 = -3;
/// No thread could be started.
pub const NO_THREAD: i32 = -4;

/// What the collector says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The program has not begun to use CUDA; recording begins when it does.
    Waits,
    /// It records, with this libcupti.
    Records(String),
    /// Nothing is recorded: why, and what helps.
    Refused(String, String),
    /// All is written, and CUPTI is free.
    Left,
}

impl Said {
    /// As a message.
    pub fn encode(&self) -> String {
        match self {
            Said::Waits => "waits".to_owned(),
            Said::Records(with) => format!("records\n{with}"),
            Said::Refused(why, help) => format!("refused\n{why}\n{help}"),
            Said::Left => "left".to_owned(),
        }
    }

    /// From a message; nothing where it is none.
    pub fn decode(text: &str) -> Option<Said> {
        let mut parts = text.splitn(3, '\n');
        let word = parts.next()?;
        let mut next = || parts.next().unwrap_or_default().to_owned();
        match word {
            "waits" => Some(Said::Waits),
            "records" => Some(Said::Records(next())),
            "refused" => Some(Said::Refused(next(), next())),
            "left" => Some(Said::Left),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_arrives() {
        let refused = Said::Refused("no libcupti".to_owned(), "install one\nor two".to_owned());
        for said in [
            Said::Waits,
            Said::Records("CUPTI 130001".to_owned()),
            refused,
            Said::Left,
        ] {
            assert_eq!(Said::decode(&said.encode()), Some(said));
        }
        assert_eq!(Said::decode("nonsense"), None);
    }
}
