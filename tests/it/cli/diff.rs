//! `gpulock diff` as a user meets it.

use gpulock::report::schema;

use super::program::{GOOD, Place};

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
