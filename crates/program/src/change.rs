//! What to change: the call, and what to add to it or to set anew, in the words of what a program is written in.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::source::{Call, Sources};

/// A call to change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The line that it stands in, or where its cost was seen ("train.py:19"); absent where no line is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What is called ("DataLoader").
    pub call: String,
    /// What to add or to set.
    pub set: Vec<Setting>,
    /// Whether it is only likely to help.
    #[serde(rename = "try")]
    pub is_try: bool,
}

/// An argument to add or to set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Empty where it has no name.
    pub name: String,
    /// What it is now; absent where it is not set, or no source could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    pub new: String,
}

impl Display for Change {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let place = self.place.iter().map(|it| format!("{it}  "));
        let place: String = place.collect();
        let set: Vec<String> = self.set.iter().map(Setting::to_string).collect();
        let likely = if self.is_try { "try " } else { "" };
        write!(f, "{place}{likely}{}: {}", self.call, set.join(", "))
    }
}

impl Display for Setting {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Setting { name, old, new } = self;
        match (name.as_str(), old) {
            ("", None) => f.write_str(new),
            ("", Some(old)) => write!(f, "{old} → {new}"),
            (name, None) if new == MORE => write!(f, "more {name}"),
            (name, None) => write!(f, "{name}={new}"),
            (name, Some(old)) => write!(f, "{name}={old} → {new}"),
        }
    }
}

/// A number that is to grow.
const MORE: &str = "more";

impl Sources<'_> {
    /// What to change by words (calls, settings: `changes.txt` of `findings` says how), at the line that was seen, as far as it is not done there.
    pub fn changes(&self, told: &str) -> Vec<Change> {
        let mut general = None;
        let mut found = Vec::new();
        // Some cures have no words in a source.
        for told in told.split("; ").filter(|it| !it.is_empty()) {
            let likely = told.strip_prefix("try ");
            let (calls, set) = likely
                .unwrap_or(told)
                .split_once(": ")
                .unwrap_or((told, ""));
            let change = |name: &str, call: Option<&Call>| Change {
                place: match call {
                    Some(call) => Some(call.place.clone()),
                    None => self.seen.map(|it| it.place.clone()),
                },
                call: name.to_owned(),
                set: set
                    .split(", ")
                    .filter_map(|it| Setting::of(it, call))
                    .collect(),
                is_try: likely.is_some(),
            };
            let last = |name| str::rsplit_once(name, '.').filter(|it| !it.0.is_empty());
            let called = |name| {
                self.call(last(name).map_or(name, |it| it.1))
                    .map(|it| (name, it))
            };
            match calls.split('|').find_map(called) {
                Some((name, call)) => found.push(change(name, Some(&call))),
                None => {
                    let first = calls.split('|').next().unwrap_or(calls);
                    general = general.or_else(|| Some(change(first, None)));
                }
            }
        }
        found.retain(|it| !it.set.is_empty());
        match found.is_empty() {
            true => general.into_iter().collect(),
            false => found,
        }
    }
}

impl Setting {
    /// Of "name=default>value"; `None` where a call has it already.
    fn of(told: &str, call: Option<&Call>) -> Option<Setting> {
        let (name, new) = told
            .split_once('=')
            .filter(|it| !it.0.contains([' ', '(', '"']))
            .unwrap_or(("", told));
        let (default, new) = new
            .split_once('>')
            .map_or((None, new), |it| (Some(it.0), it.1));
        let is_it = |it: &&(String, String)| it.0 == name;
        let set = |it: &Call| it.args.iter().find(is_it).map(|it| it.1.clone());
        // Words are told behind no value.
        let is_value = !name.is_empty() || new.starts_with('"') || new == "False";
        let old = call
            .filter(|_| is_value)
            .and_then(|it| set(it).or(default.map(str::to_owned)));
        let (name, new) = (name.to_owned(), new.to_owned());
        let is_set = old.as_ref().is_some_and(|it| new.starts_with(it.as_str()));
        (!is_set).then_some(Setting { name, old, new })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causes::stacks::LineShare;

    const TEXT: &str = "import torch\nloader = DataLoader(data, num_workers=4,\n    pin_memory=True)\noptimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)\nfor x in loader:\n    x = x.to('cuda')\n    y = y.to('cuda', non_blocking=True)\nz = inbox.get(timeout=max(0.0, ends - now()))\n";

    fn told(cure: &str, line: u32) -> Vec<String> {
        let seen = LineShare {
            place: format!("train.py:{line}"),
            file: "/x/train.py".to_owned(),
            line,
            function: "main".to_owned(),
            call: None,
            deepest: None,
            deep: 0,
            samples: 9,
            of: 9,
            is_blocked: false,
        };
        let files = vec![("/x/train.py".to_owned(), TEXT.into())];
        let seen = Some(&seen);
        let sources = Sources { files, seen };
        let changes = sources.changes(cure).into_iter();
        changes.map(|it| it.to_string()).collect()
    }

    #[test]
    fn a_change_names_the_line_of_the_call_and_what_stands_there() {
        assert_eq!(
            told("DataLoader: num_workers=0>more", 5),
            ["train.py:2  DataLoader: num_workers=4 → more"]
        );
        assert_eq!(told("", 5), [""; 0]);
        assert_eq!(
            told("AdamW: fused=True", 5),
            ["train.py:4  AdamW: fused=True"]
        );
        // At the line that was seen, though there is another one.
        assert_eq!(
            told(
                "tensor: pin_memory() before the copy; DataLoader: pin_memory=True; .to|.cuda|.copy_: non_blocking=True",
                6
            ),
            ["train.py:6  .to: non_blocking=True"]
        );
        // There all is done that can be added.
        assert_eq!(
            told(
                "tensor: pin_memory() before the copy; DataLoader: pin_memory=True; .to|.cuda|.copy_: non_blocking=True",
                7
            ),
            ["train.py:7  tensor: pin_memory() before the copy"]
        );
        assert_eq!(
            told("DataLoader: prefetch_factor=2>more", 5),
            ["train.py:2  DataLoader: prefetch_factor=2 → more"]
        );
        assert_eq!(
            told("RMSprop: foreach=True", 5),
            ["train.py:5  RMSprop: foreach=True"]
        );
        assert_eq!(
            told(".get|.wait: timeout=shorter", 8),
            ["train.py:8  .get: timeout=max(0.0, ends - now()) → shorter"]
        );
        assert_eq!(
            told("try torch.compile: mode=\"max\"", 5),
            ["train.py:5  try torch.compile: mode=\"max\""]
        );
    }
}
