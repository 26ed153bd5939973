//! `phrases.txt`: every sentence that answers, on one page, taken from the sources that hold them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What is told, and the files that tell it: a folder stands for all of its files but tests.
const CHAPTERS: &[(&str, &[&str])] = &[
    (
        "Headlines",
        &[
            "crates/advice/src/verdict/words/idle.rs",
            "crates/advice/src/verdict/words.rs",
            "crates/advice/src/verdict/awaited.rs",
        ],
    ),
    (
        "Causes of a gap",
        &[
            "crates/causes/src/idle/explain.rs",
            "crates/causes/src/idle/kinds.rs",
            "crates/causes/src/idle/words.rs",
        ],
    ),
    (
        "Findings and their cures",
        &["crates/findings/src", "crates/program/src/cures.rs"],
    ),
    (
        "Predictions, refused edits, and what predictions rest on",
        &[
            "src/report/whatif.rs",
            "src/report/gpus.rs",
            "crates/replay/src/whatif",
            "crates/replay/src/edits",
        ],
    ),
    (
        "Comparisons",
        &[
            "src/report/compare/answer.rs",
            "src/report/compare/answer",
            "src/report/compare/comparable.rs",
        ],
    ),
    (
        "Ranks",
        &["crates/jobs/src/words.rs", "src/report/ranks.rs"],
    ),
];

/// What stands for a placeholder in an example: `key=value`, by a word of what is put there in the source. Before it may
/// stand, with a colon, a part of the source's path or of the phrase. That of the first that fits is taken, and one with a
/// place before one without.
const SAMPLES: &str = "\
    attention:all=2.00 ms|default_stream:say=cudaStreamNonBlocking|Launch less:say=a CUDA graph|or bf16:say=cublasSetMathMode|Fuse those:say=cupy.fuse does so|\
    Pin the host:say=cudaMallocHost|Keep the values:say=, not one by one|sync_loop:whose= (aten::item)|\
    optimizer:whose=400 of 500 launches are in AdamW's step|optimizer:name=AdamW|optimizer:seen_at=|offload:name=CPUAdam.step|\
    at most {inside}:all=30 ms|at most {all} of:all=30 ms|verdict:most=at most |verdict:many=8|verdict:sms=132|\
    capturing:captured=930 µs|capturing:all=953 µs|launches {}:number=900 kernels|too little:of=2.18 µs|\
    no single:Compute=24 %|no single:copies=21 %|no single:idle=55 %|for the {engine}:next=the H2D copy|\
    for the {engine}:other=the H2D copy on stream 8|hand-over:name=the H2D copy|normal gap:time=1.10 µs|\
    launch latency:time=3.20 µs|another process had:name=gemm|pages moved:next=the H2D copy|\
    before it launched:name=cudaMalloc|yet: the CPU was in:name=load_batch|alloc_loop:outliers=, 900 µs of it in 1 outlier (over 10× the median)|alloc_loop:once=900 µs|cold_start:whole=8.30 s|\
    cold_start:time=1.20 s|copy_bound:busiest=53 %|exposed:took=1.86 ms|exposed:all=64 %|exposed:alone=1.20 ms|\
    exposed:of_one=|exposed:cut_middle=ncclAllReduce|limits:roof=500 µs|limits:waves=1.06|stalled:name=matmul|stalled:what=other warps at barriers|stalled:hottest=; 61 % at kernel.cu:57|low_bandwidth:percent=42 %|\
    low_bandwidth:gbps=7.1|low_bandwidth:peak=16.8|migrations:told=, and about 1.20 ms for the CPU's page faults|CPU drew:back=64 MiB|migrations:and=, and about|\
    no_cure:rest=93 %|no_cure:rate=60|no_cure:once=|no_cure:if=: what a cure saves is not known|no_core:waiting_ns=1.30 ms|\
    no_core:looked_ns=3.10 ms|no_overlap:text=kernels (3.30 ms) and H2D (2.40 ms)|pageable memory:if=run|pageable memory:time=3.00 ms|\
    pageable:staging=|race:buffer=input|no_overlap:ahead=|migrations:evicted=|sync_loop:by=|sync_loop:keep=keep the GPU idle for|sync_loop:are_of_values=Launch ahead and sync once at the end.|seen_at=|tiny_copies:moved=4 KiB|memsets of:moved=1 GiB|\
    watched:records=1,200|watched:percent=4 %|watched:made=there are|watched:what=NVTX ranges|watched:without=most of them|verdict/scope:mean= (mean)|outside CUDA:within=, most of it in init_model|watched:waits=Leave out --waits, which costs most here. |report/whatif:gpu=4.10 ms|report/whatif:chain=3.80 ms|\
    report/whatif:host=1.20 ms|report/whatif:replayed_ns=1.21 ms|report/whatif:replay_error=0.8 %|graph:SHORT=5.00 µs|\
    graph:NODE_LEAST=530 ns|graph:NODE_MOST=2.80 µs|edits:AROUND_MAX=20.0 µs|range from:from=18 % faster|\
    range from:to=34 % faster|lacks:name=matmul|on {on_a}:on_a=1 GPU|on {on_a}:on_b=2 GPUs|comparable:all=5|comparable:cut=1|clocks:median=14.0 µs|\
    clocks:p95=32.0 µs|failed:of=21|failed:failed=21|failed:kind=launches|failed:code=700|\
    failed:why=: illegal memory access|failed:text=21 of 21 launches failed (error 222)|of_threads= of 1 thread|\
    up_to=up to |threads=32 threads|queued behind:name=gemm|only then:name=cudaStreamSynchronize|\
    had waited in:name=cudaStreamSynchronize|pageable copy in:name=cudaMemcpyAsync|its copy is done:name=cudaMemcpy|\
    on itself:name=buffer flush|was launched:at=at train.py:12 step|launch:name=cudaLaunchKernel|GPU code:name=cudaLaunchKernel|\
    left none:name=cudaGraphLaunch|of the job:count=2|verdict:of_all=53 % |of_it=73 % of their time|alloc_loop:mostly=, mostly cudaMalloc|mostly=mostly|({}):words=73 % of kernel time|apart=|calling=, their calls 1.10 ms|\
    if=are|host_bound:line=outside CUDA calls|host_bound:whose=|late_rank:names=ranks 3 and 5|\
    limits:why=|limits:name=matmul|limits:how=are limited by memory|no_core:number=4|\
    shared_gpu:others=another process is also|shared_gpu:names=python (4711)|shared_gpu:more=2|unwaited:names=forward|\
    `{of}`:of=streamed|{of} costs:of=launches|report/whatif:of=marked by ProfilerStep|\
    report/whatif:what=The run takes 1.20 ms|report/gpus:device=NVIDIA H200|ERROR_MAX=5|engines= (H2D 4.10 ms)|\
    edits:name=load_batch|edits/graph:many=|report/compare:name=streamed|regression:all=streamed|regression:told=|undecided:a=1|undecided:b=1|report/compare:told=26 % faster in streamed|\
    jobs:other=rank 3|jobs:line=train.py:12|report/ranks:name=node-3|report/ranks:ranks=8|percent_of=42 %|\
    of_host=DataLoader|outliers=, 900 µs of it in 1 outlier (over 10× the median)|duration=1.20 ms|percent=42 %|\
    bytes=48 MiB|count=96|rate=16.8|time=800 µs|name=cudaMalloc|next=matmul|source=measured on an NVIDIA H200|\
    class=launch-bound|part=53 %|why=while the CPU launches 900 kernels of 2.30 µs|several=|of=8.30 ms|whole=each 37.2 ms step|\
    each=2.30 µs|idle=76 %|number=7 syncs|what=copies run|names= (H2D 28 %, D2H 31 %)|beside=not overlapped by kernels|\
    computing=93 %|of_kernel=61 % of their time|words=61 % of their time compute-bound|least=500 µs|took=1.20 ms|told=train.py:19|\
    line=train.py:19 in 270 of 282 stack samples (96 %)|it=270 of 282 stack samples saw the CPU in load at train.py:19|stream=stream 7|\
    elsewhere=gemm on stream 8|engine=H2D copy engine|other=gemm on stream 8|from=H2D copy engine|to=SMs|\
    untraced=, in code that was not traced|direction=H2D|entry=transpose|cold_start:what=loading GPU code|id=1|device=0|\
    doing=, 81 % of it in DataLoader|seen=|first=GPUs 0|last=1|and=and|title=the GPU waits for the CPU|cores= of 4 cores|\
    all=128|len=96|group=CPU work|premise=pin|samples=40|memory=, 3 GiB|rest=|many=3|few_blocks=8 blocks|\
    multiprocessors=132|most=1980|cut_middle=matmul|short=matmul|mean=1410|reasons=thermal limit|edit=graph|\
    at_clock=; 1410 MHz on average|reason=no GPU operation was recorded|saves=predicted to save 1.9 ms of 8.3 ms a step|\
    off=0.3 %|above=those above are fixed|alone=3.2 ms|of_all=of 8.3 ms a step|estimate=|staged=3|long=2|pauses=240|\
    node=71|help=; did you mean `load_batches`?|join=streamed|limit=5 %|need=6|runs=1|verdict=26 % faster|\
    change=26 % faster|same=2|precise=14.46 → 10.68 ms|low=1.231|high=1.277|p=p=0.002|n=6|warning=A ran on 1 GPU, B on 2 GPUs|\
    left=12|one=|culprit=next(loader)|cause=stream sync|ratio=1.31|mine=1.20 ms|theirs=800 µs|\
    headline=straggler rank 1: 3.1 ms late every third step|by=3.1 ms|unit=step|whose=rank 1's|ordinal=third|late=4|steps=12|\
    without=18.6 ms|now=19.7 ms|unit_name=step|numbers=2, 5, 8, 11|more= …|ranks=rank 3|called=rank 3|hosts=2|kind=steps|\
    figure=whether chance explains the difference|error=12.7|variant=streamed|which=this run has several variants|labels=sequential, streamed|\
    wanted=fast|sim=A|real=B|on_a=NVIDIA A100|on_b=NVIDIA H200|side=A|printable=step|m=130|counts=2|inside=2 ms|\
    refused=no GPU operation was recorded|row=pin";

fn files(path: &Path, into: &mut Vec<PathBuf>) {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    if name == "tests" || !path.exists() {
        return;
    }
    if path.is_file() {
        into.push(path.to_owned());
        return;
    }
    let entries = path.read_dir().expect("a folder").flatten();
    let mut inside: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    inside.sort();
    for path in inside {
        files(&path, into);
    }
}

/// A phrase with a sample in each placeholder, by the arguments behind it; `None` where there is nothing to put there.
fn example(phrase: &str, behind: &str, path: &str) -> Option<String> {
    let mut arguments = arguments(behind).into_iter();
    let mut parts = phrase.split('{');
    let mut filled = parts.next()?.to_owned();
    for part in parts {
        let (inside, text) = part.split_once('}')?;
        let name = inside.split(':').next()?;
        let expression = if name.is_empty() {
            arguments.next()?
        } else {
            name
        };
        filled += &sample(expression, &[path, phrase])?;
        filled += text;
    }
    (filled != phrase).then_some(filled)
}

/// What stands between the commas behind a literal, up to the end of its call.
fn arguments(behind: &str) -> Vec<&str> {
    let (mut found, mut depth, mut from, mut in_text) = (Vec::new(), 0, 0, false);
    for (at, c) in behind.char_indices() {
        match c {
            '"' => in_text = !in_text,
            '(' | '[' | '{' if !in_text => depth += 1,
            ')' | ']' | '}' if !in_text && depth > 0 => depth -= 1,
            ',' | ')' if !in_text && depth == 0 => {
                found.push(&behind[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        if !in_text && (c == ';' || c == ')' && depth == 0 && from == at + 1) {
            break;
        }
    }
    found.into_iter().skip(1).collect()
}

/// What an expression may come to: by the first word in it that has a sample. So many things end with their name.
fn sample(expression: &str, places: &[&str]) -> Option<String> {
    let expression = expression.trim().trim_start_matches("activity::text::");
    let counts = expression.starts_with("counted(") || expression.starts_with("plural(");
    if let Some(things) = expression.rsplit('"').nth(1).filter(|_| counts) {
        let many = if expression.starts_with("plural(") {
            "s"
        } else {
            ""
        };
        return Some(format!("3 {things}{many}"));
    }
    let words = expression.split(|c: char| !c.is_alphanumeric() && c != '_');
    let words: Vec<&str> = words.collect();
    // What stands for a place comes first, whichever word of the expression it is for.
    let find = |is_placed: bool| {
        words.iter().find_map(|word| {
            let mut samples = SAMPLES.split('|').filter_map(|it| it.split_once('='));
            let fits = |key: &str| match key.rsplit_once(':') {
                Some((place, key)) => {
                    is_placed && key == *word && places.iter().any(|it| it.contains(place))
                }
                None => !is_placed && key == *word,
            };
            samples.find(|it| fits(it.0)).map(|it| it.1.to_owned())
        })
    };
    find(true).or_else(|| find(false))
}

/// The string literals of a source, without its comments, attributes and tests, in order, each with an example.
fn literals(source: &str, path: &str) -> Vec<(String, Option<String>)> {
    let (code, _) = source
        .split_once("#[cfg(test)]\nmod tests {")
        .unwrap_or((source, ""));
    let mut found = Vec::new();
    for line in code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
    {
        found.push(line);
    }
    let code = found.join("\n");
    let mut all = Vec::new();
    let mut rest = code.as_str();
    while let Some(from) = rest.find('"') {
        let is_char = rest[..from].ends_with('\'') && rest[from + 1..].starts_with('\'');
        rest = &rest[from + 1..];
        if is_char {
            continue;
        }
        let mut end = 0;
        while let Some(at) = rest[end..].find(['"', '\\']) {
            end += at;
            if rest[end..].starts_with('"') {
                break;
            }
            end += 2;
        }
        let text = rest[..end].replace("\\\"", "\"");
        // A backslash at a line's end joins it with the next one.
        let parts: Vec<&str> = text.split("\\\n").map(str::trim_start).collect();
        rest = &rest[(end + 1).min(rest.len())..];
        let phrase = parts.concat();
        let example = example(&phrase, rest, path);
        all.push((phrase, example));
    }
    all
}

/// Words of JSON alone, which nobody is told.
const OF_JSON: [&str; 2] = ["by turns", "wall clock"];

/// Whether somebody reads it as words: no name of a rule, a key or a path.
fn is_phrase(text: &str) -> bool {
    let words = text.split_whitespace().filter(|word| {
        word.chars().filter(|c| c.is_alphabetic()).count() >= 2 && !word.starts_with('{')
    });
    words.count() >= 2 && !OF_JSON.contains(&text)
}

fn page() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut page = "# Phrases\n\nEvery sentence with which cuptop answers, from the sources that hold them: `{…}` stands for a name or a figure, and an example with some of them below it. \
                    `.ci/bless` writes this page.\n"
        .to_owned();
    for (title, paths) in CHAPTERS {
        let _ = write!(page, "\n## {title}\n");
        let mut sources = Vec::new();
        for path in *paths {
            files(&root.join(path), &mut sources);
        }
        for source in sources {
            let text = std::fs::read_to_string(&source).expect("a source");
            let mut phrases = literals(&text, &source.to_string_lossy());
            phrases.retain(|it| is_phrase(&it.0));
            if phrases.is_empty() {
                continue;
            }
            let name = source.file_stem().unwrap_or_default().to_string_lossy();
            let _ = write!(page, "\n**{name}**\n\n");
            for (phrase, example) in phrases {
                let plain = |it: &str| it.trim().replace('`', "'");
                let _ = writeln!(page, "- {}", plain(&phrase));
                if let Some(example) = example {
                    let _ = writeln!(page, "  *{}*", plain(&example));
                }
            }
        }
    }
    page
}

/// The words of each sentence of a phrase.
fn longest(phrase: &str) -> usize {
    let sentences = phrase
        .split_inclusive([':', ';', '·', '?'])
        .flat_map(|it| it.split(". "));
    let words = |it: &str| {
        it.split_whitespace()
            .filter(|word| word.chars().any(char::is_alphanumeric))
            .count()
    };
    sentences.map(words).max().unwrap_or(0)
}

#[test]
fn the_page_of_phrases_is_what_the_sources_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/phrases.txt");
    let page = page();
    if std::env::var_os("INSTA_UPDATE").is_some_and(|it| it == "always") {
        std::fs::write(&path, &page).expect("written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "tests/program/phrases.txt differs: `.ci/bless` writes it anew"
    );
}

#[test]
fn no_sentence_has_more_than_twenty_words() {
    let long: Vec<String> = page()
        .lines()
        .filter_map(|line| line.strip_prefix("- "))
        .filter(|phrase| longest(phrase) > 20)
        .map(str::to_owned)
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn literals_are_found_and_comments_and_tests_are_not() {
    let source = "// \"not this\"\nlet a = \"this \\\"one\\\"\";\nlet c = '\"';\nlet b = \"two \\\n    lines\";\n#[cfg(test)]\nmod tests {\n\"no\"";
    let found: Vec<String> = literals(source, "").into_iter().map(|it| it.0).collect();
    assert_eq!(found, ["this \"one\"", "two lines"]);
    assert!(is_phrase("the GPU is idle for {}") && !is_phrase("sync-in-loop"));
    let source = "format!(\"{} of {of}: {:.1}\", counted(a(1), \"copy\", \"copies\"), 100.0 * error) + \"{unheard} of\"";
    let examples: Vec<_> = literals(source, "")
        .into_iter()
        .filter_map(|it| it.1)
        .collect();
    assert_eq!(examples, ["3 copies of 8.30 ms: 12.7"]);
}
