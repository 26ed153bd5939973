//! What is looked for: some words, or a regular expression.

use regex::{Regex, RegexBuilder};

/// What makes the rest of a text a regular expression.
const EXPRESSION: &str = "re:";
/// What makes names without the rest of a text be found.
const NOT: &str = "not:";
/// The most that an expression may take once it is compiled: enough for any that is typed by hand.
const COMPILED: usize = 1 << 20;

/// What names are compared with. Neither form tells capitals from small letters.
#[derive(Clone, Debug)]
pub struct Needle {
    is: Is,
    is_not: bool,
}

#[derive(Clone, Debug)]
enum Is {
    /// Somewhere in the name, in small letters.
    Words(String),
    Expression(Regex),
    /// An expression that is none (yet), and why: nothing matches it.
    Broken(String),
}

impl Needle {
    /// Reads what was typed; `None` when that is nothing to look for.
    pub fn new(text: &str) -> Option<Needle> {
        let (is_not, text) = match text.strip_prefix(NOT) {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let is = match text.strip_prefix(EXPRESSION) {
            Some("") => return None,
            Some(expression) => {
                let built = RegexBuilder::new(expression)
                    .case_insensitive(true)
                    .size_limit(COMPILED)
                    .build();
                match built {
                    Ok(expression) => Is::Expression(expression),
                    Err(error) => Is::Broken(why(&error)),
                }
            }
            None if text.is_empty() => return None,
            None => Is::Words(text.to_lowercase()),
        };
        Some(Needle { is, is_not })
    }

    /// Whether names without it are found.
    pub fn is_not(&self) -> bool {
        self.is_not
    }

    /// Whether it is in a name.
    pub fn is_in(&self, name: &str) -> bool {
        self.is_not
            != match &self.is {
                Is::Words(words) => name.to_lowercase().contains(words),
                Is::Expression(expression) => expression.is_match(name),
                Is::Broken(_) => return false,
            }
    }

    /// Why it can be in no name.
    pub fn error(&self) -> Option<&str> {
        match &self.is {
            Is::Broken(why) => Some(why),
            _ => None,
        }
    }
}

/// The last line of what the reader of expressions says: the others draw the place.
fn why(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_expressions_are_found_whatever_their_case() {
        let is_in = |text: &str, name: &str| Needle::new(text).is_some_and(|n| n.is_in(name));
        assert!(is_in("GEMM", "ampere_sgemm_64x64"));
        assert!(!is_in("gemv", "ampere_sgemm_64x64"));
        // A dot is a dot, unless it is asked to be more.
        assert!(!is_in("s.emm", "ampere_sgemm_64x64"));
        assert!(is_in("re:S.EMM_(64|32)x", "ampere_sgemm_64x64"));
        assert!(!is_in("re:^sgemm", "ampere_sgemm_64x64"));
        assert!(is_in("ÄHRE", "die ähre"));
        assert!(is_in("not:gemv", "ampere_sgemm") && !is_in("not:re:^AMP", "ampere_sgemm"));
    }

    #[test]
    fn what_is_no_expression_says_so_and_matches_nothing() {
        assert!(Needle::new("").is_none() && Needle::new("re:").is_none());
        let broken = Needle::new("re:(a").expect("something");
        assert!(!broken.is_in("(a"));
        assert_eq!(broken.error(), Some("unclosed group"));
        let huge = Needle::new("re:(\\w{999}){999}").expect("something");
        assert!(huge.error().is_some());
    }
}
