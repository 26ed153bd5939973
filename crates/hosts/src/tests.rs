//! The first link, which is waited for.

use super::*;

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
