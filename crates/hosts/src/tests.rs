//! The first link, which is waited for.

use super::*;
use frame::{Response, encode, encode_hello};

/// What sshd behind a firewall that lets only the login through does, and a machine that swaps.
#[test]
fn a_far_side_that_says_nothing_is_named_and_given_up() {
    let ssh = ["sh", "-c", "exec sleep 60"].map(str::to_owned);
    let place = Place::parse(Path::new("gpu01:runs")).expect("a place");
    let (mut said, begun) = (Vec::new(), Instant::now());
    let mut say = |text: &str| said.push(text.to_owned());
    let login = Duration::from_millis(1_500);
    let failed = connect_by(&ssh, login, &[place], Some(&mut say)).err();
    assert!(failed.is_some_and(|it| it.starts_with("no word of cuptop from gpu01 in 1.5 s\n")));
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "it slept to its end"
    );
    assert!(said[1].starts_with("waiting for gpu01:"), "{said:?}");
}

/// A far end that runs a piece of shell, with what it says in `$said`, is followed with short patience.
fn connect_to(shell: &str, said: &[u8]) -> Result<Vec<Host>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("said");
    std::fs::write(&file, said).expect("written");
    let shell = format!("said={}; {shell}", file.display());
    let ssh = ["sh".to_owned(), "-c".to_owned(), shell];
    let place = Place::parse(Path::new("gpu01:runs")).expect("a place");
    let login = Duration::from_millis(1_500);
    let hosts = connect_by(&ssh, login, &[place], Some(&mut |_| {}))?;
    let until = Instant::now() + Duration::from_secs(60);
    while Instant::now() < until {
        if let Some(why) = hosts[0].is_lost(Instant::now()) {
            return Err(why);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(hosts)
}

#[test]
fn a_far_side_that_drips_is_given_up() {
    let drip = "cat $said; while :; do printf x; sleep 0.1; done";
    // The head of a frame that never becomes whole.
    let head = [262_000u32.to_le_bytes(), [0; 4]].concat();
    let hello = encode_hello("0.1.0");
    let why = connect_to(drip, &[&hello[..], &head[..]].concat()).err();
    assert_eq!(
        why.as_deref(),
        Some("gpu01 brings less than 1.5 kB in 1.5 s")
    );

    // It answers once on each link, whatever it is asked.
    let drip = "head -c 26 $said; head -c 1 >/dev/null; tail -c +27 $said; while :; do printf x; sleep 0.1; done";
    let answer = encode(&Response::End { has_more: false });
    let why = connect_to(drip, &[&hello[..], &answer[..], &head[..]].concat()).err();
    assert!(
        why.as_ref()
            .is_some_and(|it| it.contains("less than 1.5 kB")),
        "{why:?}"
    );

    // It answers each request, and never has what it promises.
    let promises = "head -c 26 $said; while [ $(dd bs=99 count=1 2>/dev/null | wc -c) -gt 0 ]; do tail -c +27 $said; done";
    let answer = encode(&Response::End { has_more: true });
    let why = connect_to(promises, &[&hello[..], &answer[..]].concat()).err();
    assert!(
        why.as_ref()
            .is_some_and(|it| it.contains("promises more and brings none for 1.5 s")),
        "{why:?}"
    );

    // Whole frames, fast enough, and never the end of an answer.
    let lives =
        "head -c 26 $said; head -c 1 >/dev/null; while :; do tail -c +27 $said; sleep 0.1; done";
    let file = Response::File {
        id: 1,
        name: "1-1.cuptop".to_owned(),
    };
    let life = encode(&Response::Life { id: 1, lives: None });
    let said = [&hello[..], &encode(&file)[..], &life.repeat(1_000)[..]].concat();
    let why = connect_to(lives, &said).err();
    assert_eq!(
        why.as_deref(),
        Some("gpu01 brings no end of its answer in 3 s")
    );
}
