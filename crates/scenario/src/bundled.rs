//! Scenarios and kernels that travel inside a program. It hands them in as a [`Library`].

/// A bundled scenario.
#[derive(Clone, Copy, Debug)]
pub struct Bundled {
    /// What `cuptop run` calls it ("pipeline").
    pub name: &'static str,
    /// Its TOML text.
    pub text: &'static str,
}

/// The scenarios and kernels that a program has bundled. The default is empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Library {
    /// All bundled scenarios, in the order to show them.
    pub scenarios: &'static [Bundled],
    /// All bundled kernels: file name and CUDA C++ text.
    pub kernels: &'static [(&'static str, &'static str)],
}

impl Library {
    /// The names of the scenarios, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.scenarios.iter().map(|scenario| scenario.name)
    }

    /// The names that begin with this text.
    pub fn beginning(&self, with: &str) -> Vec<&'static str> {
        let mut names: Vec<&str> = self.names().collect();
        names.retain(|name| name.starts_with(with));
        names
    }

    /// The text of a bundled kernel file.
    pub fn kernel(&self, file: &str) -> Option<&'static str> {
        self.kernels
            .iter()
            .find_map(|(name, text)| (*name == file).then_some(*text))
    }
}

/// The message for a beginning that several names share.
pub fn which(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("it could be {}", quoted.join(" or "))
}
