//! Libraries that ask for an executable stack.

use gpulock::check::Findings;
use gpulock::diag::Severity;

use super::venv::{Question, Venv, assert_finding, assert_quiet, module, the_finding, the_problem};
use crate::link::fixture::Elf;

const CODE: &str = "executable-stack";
const MODULE: &str = "ext/_C.abi3.so";

fn on_glibc(glibc: &str, flags: u32) -> Findings {
    let venv = Venv::empty();
    venv.install("ext", "1.0", &[], &[(MODULE, Elf { stack: Some(flags), ..module("_C") })]);
    venv.ask(&Question { glibc: Some(glibc), ..Question::default() })
}

#[test]
fn fires() {
    let asks = "PT_GNU_STACK is executable";
    let refused = ["glibc 2.41 refuses to load it", asks, "patchelf --clear-execstack"];
    assert_finding(the_problem(&on_glibc("2.41", 7), CODE), Severity::Error, MODULE, &refused);
    assert_finding(the_problem(&on_glibc("2.100", 7), CODE), Severity::Error, MODULE, &["glibc 2.100 refuses"]);
    let loaded = ["makes the stack of the process executable", "2.41 and later refuse", asks];
    assert_finding(the_problem(&on_glibc("2.40", 7), CODE), Severity::Warning, MODULE, &loaded);
}

#[test]
fn stays_quiet() {
    assert_quiet(&on_glibc("2.41", 6), CODE);
}

/// Without the header the architecture decides: executable on x86-64, not so on aarch64.
#[test]
fn no_header_counts_as_the_architecture_has_it() {
    let on = |machine: u16| {
        let venv = Venv::empty();
        let mut bytes = Elf { machine: Some(machine), ..module("_C") }.bytes();
        // The last of the four program headers becomes an empty entry.
        bytes[64 + 3 * 56..][..4].fill(0);
        venv.put_bytes(MODULE, &bytes);
        venv.ask(&Question { glibc: Some("2.41"), ..Question::default() })
    };
    let said = ["no PT_GNU_STACK, which counts as executable"];
    assert_finding(the_finding(&on(62), CODE), Severity::Error, MODULE, &said);
    assert!(on(183).findings.iter().all(|finding| finding.code != CODE));
}
