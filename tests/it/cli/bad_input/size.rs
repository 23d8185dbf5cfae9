//! Input of a size that nobody writes: an answer in good time, or a clear limit. What grew with the square of the size
//! would take minutes here.

use std::time::Duration;

use gpulock::lock::Lock;

use super::files::in_time;
use crate::cli::program::{GOOD, Place, Ran};

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

fn resolve(text: &str) -> Ran {
    in_time(Place::with(text).command(&["resolve", "--offline"]), Duration::from_secs(60))
}

#[test]
fn a_hundred_thousand_mistakes() {
    let words = ["error[unknown-key]", "99900 more problems in gpulock.toml"];
    resolve(&(GOOD.to_owned() + &lines(100_000, |i| format!("key{i} = {i}\n")))).code(2).says(&words);
}

#[test]
fn a_hundred_thousand_indexes() {
    let index = |i| format!("[[index]]\nname = 'i{i}'\nurl = 'https://127.0.0.1:1/{i}'\npackages = ['p{i}']\n");
    resolve(&(GOOD.to_owned() + &lines(50_000, index))).code(0);
    let same = |_| "[[index]]\nname = 'i'\nurl = 'https://127.0.0.1:1/'\npackages = ['p']\n".to_owned();
    resolve(&(GOOD.to_owned() + &lines(50_000, same))).code(2).says(&["two indexes are named `i`", "more problems"]);
}

#[test]
fn values_without_end() {
    let parts = lines(10_000, |i| format!(",!=2.{i}"));
    let words = ["the value has", "bytes, and more than 4096 are not read"];
    resolve(&GOOD.replace("2.8.0", &format!(">=2{parts}"))).code(2).says(&words);
    resolve(&GOOD.replace("580", &format!(">=2{parts}"))).code(2).says(&words);
    resolve(&format!("{GOOD}[packages]\nnumpy = '>=2{parts}'\n")).code(2).says(&words);
    let place = Place::empty();
    let flag = ["resolve", "--offline", "--gpu", "A100", "--package", &format!("numpy>=2{parts}")];
    in_time(place.command(&flag), Duration::from_secs(60)).code(2).says(&words);
}

#[test]
fn one_line_of_everything() {
    let keys = lines(100_000, |i| format!("k{i} = {i}, "));
    resolve(&format!("{GOOD}[packages]\nnumpy = {{ {keys} }}\n")).code(2).says(&["line 9 of gpulock.toml is too long"]);
}

#[test]
fn packages_that_no_index_has() {
    let absent = lines(1000, |i| format!("absent-{i} = '*'\n"));
    resolve(&format!("{GOOD}[packages]\n{absent}")).code(1).says(&["absent-", "is not known here"]);
}

#[test]
fn a_lock_of_twenty_thousand_packages() {
    let place = Place::locked();
    let lock = place.lock();
    let hash = "0".repeat(64);
    let package = |i| {
        format!(
            "    {{ name = \"p{i}\", version = \"1\", wheel = \"p{i}-1-py3-none-any.whl\", needed-by = [\"torch\"] }},\n"
        )
    };
    let wheel = |i| format!("\"p{i}-1-py3-none-any.whl\" = {{ index = \"pypi\", sha256 = \"{hash}\", size = 1 }}\n");
    let count = 20_000;
    let text = lock.replacen("packages = [\n", &format!("packages = [\n{}", lines(count, package)), 1).replacen(
        "[wheel]\n",
        &format!("[wheel]\n{}", lines(count, wheel)),
        1,
    );
    // As a resolve would have written it, with its hash.
    let text = Lock::parse(&text, "gpulock.lock").unwrap().to_file();
    place.put("gpulock.lock", &text);
    let export = || in_time(place.command(&["export", "constraints"]), Duration::from_secs(60));
    assert!(export().code(0).out.contains("p19999==1"));
    place.put("gpulock.lock", text.replace("needed-by = [\"torch\"] }", "needed-by = [\"nobody\"], odd = 1 }"));
    export().code(2).says(&["unknown key `odd`", "more problems in gpulock.lock"]);
    place.put("gpulock.lock", text.repeat(4));
    export().code(2).says(&["gpulock.lock is too large"]);
}
