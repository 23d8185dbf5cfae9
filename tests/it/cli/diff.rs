//! `gpulock diff` as a user meets it.

use gpulock::report::schema;

use super::program::{GOOD, Place, Ran};

#[test]
fn two_locks_are_compared() {
    let place = Place::locked();
    place.put("old.lock", place.lock());
    assert_eq!(place.run(&["diff", "old.lock"]).code(0).out, "no difference in what is installed\n");
    place.put("gpulock.toml", GOOD.replace("2.8.0", "2.7.1").replace("A100", "H100"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    let ran = place.run(&["diff", "old.lock", "gpulock.lock"]).code(0);
    for line in ["target a\n", "  GPUs\n", "    A100 removed: sm_80 runs sm_80 code\n", "    torch 2.8.0 -> 2.7.1\n"] {
        assert!(ran.out.contains(line), "`{line}` is not in\n{}", ran.out);
    }
    place.run(&["diff", "old.lock", "--exit-code"]).code(1);
    place.run(&["diff", "gpulock.lock", "--exit-code"]).code(0);
    let table = place.run(&["diff", "old.lock", "--format", "markdown"]).code(0).out;
    assert!(table.starts_with("### target a\n") && table.contains("| torch | `2.8.0` | `2.7.1` |\n"), "{table}");
    let json = place.run(&["diff", "old.lock", "--format", "json"]).code(0).json();
    let form = schema::ALL.iter().find(|one| one.name == "diff").unwrap();
    assert!(jsonschema::draft202012::is_valid(&serde_json::from_str(form.text).unwrap(), &json), "{json:#}");
    place.run(&["diff", "none.lock"]).code(2).says(&["there is no lock", "none.lock"]);
    place.run(&["diff", "old.lock", "--format", "sarif"]).code(2);
    place.put("broken.lock", "version = ");
    place.run(&["diff", "old.lock", "broken.lock"]).code(2).says(&["broken.lock"]);
}

/// As git's difftool starts it, where a lock is new or gone.
#[test]
fn a_lock_may_be_on_one_side_alone() {
    let place = Place::locked();
    let added = place.run(&["diff", "/dev/null", "gpulock.lock"]).code(0).out;
    assert!(added.contains("target a is new") && added.contains("    torch added: 2.8.0 (cu128)"), "{added}");
    let gone = place.run(&["diff", "gpulock.lock", "/dev/null", "--exit-code"]).code(1).out;
    assert!(gone.contains("target a is gone") && gone.contains("    torch removed: 2.8.0 (cu128)"), "{gone}");
    place.run(&["diff", "/dev/null", "/dev/null", "--exit-code"]).code(0);
}

/// A name in a lock makes no line of its own.
#[test]
fn names_stay_in_their_line() {
    let place = Place::locked();
    let named = "name = \"A100\\n  packages\\n    torch 2.8.0 -> 9.9.9\\u001B[2J\"";
    place.put("other.lock", place.lock().replace("name = \"A100\"", named));
    for pair in [["other.lock", "gpulock.lock"], ["gpulock.lock", "other.lock"]] {
        let ran = place.run(&["diff", pair[0], pair[1]]).code(0);
        assert_eq!(ran.out.lines().count(), 4, "{}", ran.out);
        assert!(!ran.out.contains('\u{1b}') && !ran.out.contains("\n    torch"), "{}", ran.out);
    }
    let ran = place.run(&["resolve", "--locked", "--lock", "other.lock"]).code(1);
    assert!(!ran.err.contains('\u{1b}'), "{}", ran.err);
}

/// A lock of another revision needs no file of its own.
#[test]
fn a_lock_comes_through_a_pipe() {
    let place = Place::locked();
    place.put("old.lock", place.lock());
    place.put("gpulock.toml", GOOD.replace("2.8.0", "2.7.1"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    let wanted = place.run(&["diff", "old.lock"]).code(0).out;
    assert!(wanted.contains("torch 2.8.0 -> 2.7.1"), "{wanted}");
    let program = env!("CARGO_BIN_EXE_gpulock");
    let shell =
        |line: &str| Ran::of(place.shell(&line.replace("gpulock diff", &format!("{program} diff"))).output().unwrap());
    for line in ["gpulock diff - < old.lock", "cat old.lock | gpulock diff -", "cat old.lock | gpulock diff /dev/stdin"]
    {
        assert_eq!(shell(line).code(0).out, wanted, "{line}");
    }
    shell("gpulock diff - gpulock.lock < /dev/null").code(2).says(&["standard input is empty"]);
    shell("gpulock diff - < /dev/zero").code(2).says(&["is too large"]);
    shell("mkfifo pipe && gpulock diff pipe").code(2).says(&["a named pipe"]);
}
