use super::*;

const CUBIN: &[u8] = include_bytes!("waits.cubin");

fn lines_of(cubin: &[u8]) -> Option<ModuleLines> {
    let mut lines = ModuleLines::default();
    lines.add(Module(7, tables(cubin)?));
    Some(lines)
}

/// As `readelf --debug-dump=decodedline` has it, with the kernels' symbols.
#[test]
fn places_of_a_cubin_have_their_lines() {
    let lines = lines_of(CUBIN).expect("it has a line table");
    let first = lines.at(7, b"_Z3oddv", 0).expect("a line");
    assert_eq!(&*first.0, "/src/waits.cu");
    let line = |function: &str, at| lines.at(7, function.as_bytes(), at).map(|it| it.1);
    let of_odd = [0, 0x10, 0x40, 0x50, 0x60, 0x80, 0x90, 0xe8, 0x100, 0x1f0];
    let expected = [10, 11, 13, 13, 11, 12, 13, 7, 14, 14].map(Some);
    assert_eq!(of_odd.map(|at| line("_Z3oddv", at)), expected);
    let sum = "_Z3sumIdEvPKT_PS0_";
    assert_eq!(
        [0x3b0, 0x3c0, 0x4f0].map(|at| line(sum, at)),
        [24, 22, 25].map(Some)
    );
    // Behind the code, of no function, of another module.
    assert_eq!(
        [line("_Z3oddv", 0x200), line(sum, 0x500), line("none", 0)],
        [None; 3]
    );
    assert_eq!(lines.at(8, b"_Z3oddv", 0), None);
}

#[test]
fn tables_have_no_code() {
    let (mut kept, functions) = tables(CUBIN).expect("it has a line table");
    functions.iter().for_each(|it| kept.extend(&it.1));
    // Both kernels' sections, by `readelf -SW`.
    for code in [&CUBIN[0x1a80..0x1f80], &CUBIN[0x1f80..0x2180]] {
        assert!(
            code.windows(64)
                .all(|code| !kept.windows(64).any(|it| it == code))
        );
    }
    // Without its name a table is none, and neither is one that is too large.
    let at = CUBIN
        .windows(12)
        .position(|it| it == b".debug_line\0")
        .expect("its name");
    let mut without = CUBIN.to_vec();
    without[at + 1] = b'x';
    assert!(tables(&without).is_none());
    assert!(tables(&CUBIN[..0x900]).is_none());
}

/// Whatever bytes there are: it ends, and says no line that is none.
#[test]
fn hostile_cubins_are_read_as_far_as_they_are_sound() {
    let (mut seed, mut read) = (1_u64, 0);
    let mut below = |limit: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % limit
    };
    for round in 0..30_000 {
        let mut cubin = CUBIN.to_vec();
        // Headers of the file and of sections, line table and relocations, symbols: what is looked at.
        let from = [0, 0x578, 0x928, 0x1980, cubin.len() - 26 * 64 - 200][round % 5];
        for _ in 0..=below(4) {
            let at = (from + below(300)).min(cubin.len() - 1);
            cubin[at] = [0, 1, 0x7f, 0xff, below(256) as u8][below(5)];
        }
        cubin.truncate(
            CUBIN.len()
                - if round % 7 == 0 {
                    below(CUBIN.len())
                } else {
                    0
                },
        );
        if let Some(lines) = lines_of(&cubin) {
            read += 1;
            let said = lines.at(7, b"_Z3oddv", below(1 << 12) as u64);
            assert!(said.is_none_or(|it| it.1 > 0));
        }
    }
    assert!(read > 10_000, "{read}");
}
