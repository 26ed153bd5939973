//! What a server of a language model worked on in a step: prompts (prefill), the next token of each request (decode), or both.
//!
//! vLLM, SGLang and ATOM name their steps so while their own profilers are on. A program's own ranges "prefill" and "decode" serve, too.

use serde::Serialize;

use activity::Ns;

/// What a step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    Decode,
    Prefill,
    Mixed,
}

impl Phase {
    pub const ALL: [Phase; 3] = [Phase::Decode, Phase::Prefill, Phase::Mixed];

    /// What steps of it are called.
    pub fn word(self) -> &'static str {
        ["decode", "prefill", "prefill+decode"][self as usize]
    }
}

/// What was worked on in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// When its step begins.
    pub start: Ns,
    pub phase: Phase,
    /// The fewest and the most tokens that it made; `None` where nothing says how many.
    pub tokens: Option<(u64, u64)>,
    /// The numbers that its name has, by their names.
    pub fields: Vec<(String, u64)>,
}

impl Batch {
    /// One without numbers in its name.
    pub(super) fn new(start: Ns, phase: Phase, tokens: Option<(u64, u64)>) -> Batch {
        Batch {
            start,
            phase,
            tokens,
            fields: Vec::new(),
        }
    }
}

/// What a name says of a step; `None` where it is no such name.
pub(super) fn read(name: &str) -> Option<Batch> {
    let bracket = name.strip_suffix(']').and_then(|it| it.split_once('['));
    let (mode, text) = match (name.strip_prefix("execute_"), bracket) {
        (Some(counts), _) => ("", counts),
        (_, Some(("step", inside))) => inside.split_once(' ').unwrap_or((inside, "")),
        (_, Some(of)) => of,
        _ if ["prefill", "decode"].contains(&name) => (name, ""),
        _ => return None,
    };
    let fields = match mode {
        "" => numbers(&text.replace('_', " ")),
        _ => numbers(text),
    };
    let number = |word: &&str| Some(fields.iter().find(|it| it.0 == *word)?.1);
    let first = |words: &[&str]| words.iter().find_map(number);
    let (all, guessed) = (first(&["bs"]), first(&["generation_tokens", "toks", "tok"]));
    let (prompts, decoded) = (
        first(&["context", "new", "c"]),
        first(&["generation", "cached", "g"]),
    );
    let phase = match mode.to_ascii_lowercase().as_str() {
        "" => match (prompts > Some(0), decoded > Some(0)) {
            (true, true) => Phase::Mixed,
            (true, false) => Phase::Prefill,
            (false, true) => Phase::Decode,
            (false, false) => return None,
        },
        "mixed" => Phase::Mixed,
        "decode" | "verify" | "target_verify" => Phase::Decode,
        "extend" | "prefill" | "split_prefill" => Phase::Prefill,
        _ => return None,
    };
    // A prefill makes the first token of a request where it is its last part; speculation makes one token a request or more.
    let sum = |count: u64| (count, count + prompts.unwrap_or(0));
    let tokens = match phase {
        Phase::Prefill => Some((0, prompts.or(all).unwrap_or(0))),
        Phase::Mixed => decoded.or_else(|| all?.checked_sub(prompts?)).map(sum),
        Phase::Decode => decoded.or(all).map(|it| (it, it.max(guessed.unwrap_or(0)))),
    };
    let tokens = tokens.filter(|_| !fields.is_empty());
    let batch = Batch::new(0, phase, tokens);
    Some(Batch { fields, ..batch })
}

/// The numbers in "bs=66 c=2" and "128 context 1(8192)" by the word before them: "bs", "context", "context_tokens".
fn numbers(text: &str) -> Vec<(String, u64)> {
    let (mut fields, mut word) = (Vec::<(String, u64)>::new(), "batch");
    for part in text.split([' ', '=', '(', ')']).filter(|it| !it.is_empty()) {
        // A greater number counts nothing that a step has.
        let Ok(number) = part.parse::<u32>() else {
            word = part;
            continue;
        };
        let is_second = fields.last().is_some_and(|it| it.0 == word);
        let name = format!("{word}{}", if is_second { "_tokens" } else { "" });
        fields.push((name, number.into()));
    }
    fields
}

/// The one whose step begins there.
pub(super) fn find(batches: &[Batch], start: Ns) -> Option<&Batch> {
    let at = batches.binary_search_by_key(&start, |it| it.start).ok()?;
    batches.get(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Option<(Phase, Option<(u64, u64)>)> {
        read(name).map(|it| (it.phase, it.tokens))
    }

    #[test]
    fn names_of_engines_say_phase_and_tokens() {
        use Phase::{Decode, Mixed, Prefill};
        let known = [
            ("execute_context_0(0)_generation_32(32)", Decode, (32, 32)),
            ("execute_context_0(0)_generation_4(16)", Decode, (4, 16)),
            ("execute_context_1(8192)_generation_31(31)", Mixed, (31, 32)),
            ("execute_context_2(900)_generation_0(0)", Prefill, (0, 2)),
            (
                "execute_128_context_1(sq128sk128sqsq9sqsk9)_generation_3(sq3sk900sqsq3sqsk900)",
                Mixed,
                (3, 4),
            ),
            ("execute_new_3_cached_5", Mixed, (5, 8)),
            ("execute_new_0_cached_7", Decode, (7, 7)),
            ("step[DECODE bs=64]", Decode, (64, 64)),
            ("step[DECODE g_sqsq=4 bs=9 new_key=7]", Decode, (9, 9)),
            (
                "step[EXTEND bs=1 toks=1025 c_sqsq=1050625 c_sk=1025]",
                Prefill,
                (0, 1),
            ),
            (
                "step[MIXED bs=66 c=2 g=64 c_sq=2048 g_sq=64]",
                Mixed,
                (64, 66),
            ),
            ("step[MIXED g=64 c_sq=2048 c=2 bs=66]", Mixed, (64, 66)),
            ("prefill[bs=2 tok=16384]", Prefill, (0, 2)),
        ];
        for (name, phase, tokens) in known {
            assert_eq!(of(name), Some((phase, Some(tokens))), "{name}");
        }
        assert_eq!(of("decode"), Some((Decode, None)));
        for other in [
            "execute_model",
            "step[IDLE bs=0]",
            "step 7",
            "decode_image",
            "step[",
            "execute_context_0(0)_generation_0(0)",
            "[DECODE]",
            "execute_context_18446744073709551615(1)_generation_0(0)",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn numbers_of_a_name_are_kept_also_those_that_are_new() {
        let fields = read("step[DECODE bs=9 new_key=7 text=a]").map(|it| it.fields);
        assert_eq!(
            fields,
            Some(vec![("bs".to_owned(), 9), ("new_key".to_owned(), 7)])
        );
        let fields = read("execute_5_context_1(sq128sk256)_generation_4(4)")
            .map(|it| it.fields)
            .unwrap_or_default();
        let numbers = [
            ("batch", 5),
            ("context", 1),
            ("generation", 4),
            ("generation_tokens", 4),
        ];
        assert_eq!(fields, numbers.map(|(key, value)| (key.to_owned(), value)));
    }
}
