//! Text from files and indexes that would steer a terminal: replaced in what people see, exact in JSON.

use gpulock::lock::Lock;

use crate::cli::program::{GOOD, Place, Ran};
use crate::link::fixture::Elf;

const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}\u{7f}\u{202e}X\u{2066}\u{200f}\u{61c}\u{2028}";

fn harmless(ran: &Ran) {
    let steers = |c: char| (c.is_control() && c != '\n') || HOSTILE.chars().filter(|c| !c.is_ascii()).any(|h| h == c);
    for text in [&ran.out, &ran.err] {
        assert!(!text.contains(steers), "{text:?}");
    }
}

/// The text as TOML writes it.
fn escaped() -> String {
    HOSTILE.chars().map(|c| if c == 'X' { c.to_string() } else { format!("\\U{:08X}", u32::from(c)) }).collect()
}

#[test]
fn names_in_a_lock() {
    let place = Place::locked();
    let named = place.lock().replace("name = \"A100\"", &format!("name = \"{}\"", escaped()));
    place.put("gpulock.lock", &named);
    harmless(&place.run(&["resolve", "--locked"]).code(1));
    harmless(&place.run(&["check"]).code(1));
    place.put("gpulock.lock", Lock::parse(&named, "gpulock.lock").unwrap().to_file());
    let ran = place.run(&["resolve", "--locked"]).code(0);
    harmless(&ran);
    assert!(ran.out.contains("\u{fffd}X\u{fffd}"), "{ran:?}");
    let json = place.run(&["resolve", "--locked", "--format", "json"]).code(0).json();
    assert_eq!(json["targets"][0]["gpus"][0]["name"], HOSTILE);
    harmless(&place.run(&["resolve", "--offline"]).code(0));
}

#[test]
fn names_in_a_manifest() {
    for manifest in [
        GOOD.replace("\"A100\"", &format!("\"{}\"", escaped())),
        format!("{GOOD}\"{}\" = 1\n", escaped()),
        format!("{GOOD}# \u{202e}\n'\u{202e}' = 1\n"),
        format!("{GOOD}[packages]\n\"{}\" = \"1\"\n", escaped()),
        format!("{GOOD}[packages]\nnumpy = \"{}\"\n", escaped()),
        GOOD.replace("target.a", &format!("target.\"{}\"", escaped())),
    ] {
        let place = Place::with(&manifest);
        let ran = place.refuses(&["resolve", "--offline"], 2);
        assert_eq!(ran.out, "");
        harmless(&ran);
    }
}

#[test]
fn names_of_files() {
    let place = Place::with(GOOD);
    let name = "a\u{1b}[2J\u{202e}.lock";
    let ran = place.run(&["resolve", "--offline", "--lock", name]).code(0);
    harmless(&ran);
    assert!(ran.out.contains("wrote a"), "{ran:?}");
    assert!(place.path(name).exists());
    harmless(&place.run(&["resolve", "--locked", "--lock", "b\u{1b}[2J.lock"]).code(1));
}

#[test]
fn names_in_a_matrix() {
    let place = Place::empty();
    std::fs::create_dir(place.path("m")).unwrap();
    let gpus = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/compat-matrix/gpu.toml")).unwrap();
    let named = gpus.replace("\"H100\"", "\"H100\\u001B[2J\\u202E\"");
    assert_ne!(named, gpus);
    place.put("m/gpu.toml", named);
    harmless(&place.run(&["matrix", "show", "gpu", "--matrix", "m"]));
}

/// Names and texts of an ELF file, and of the file itself.
#[test]
fn names_in_libraries() {
    let place = Place::empty();
    let name = "a\u{1b}[2J\nb.so";
    let library = Elf::library(HOSTILE).needed(&[HOSTILE]).rpath(HOSTILE).asks(&[HOSTILE]);
    library.write(&place.path(name));
    Elf::library("x").defines(&["f"]).write(&place.path("\u{202e}.so"));
    let names = [name, "\u{202e}.so", "missing\u{1b}.so"];
    let ran = place.run(&[&["inspect"], &names[..]].concat()).code(2);
    harmless(&ran);
    assert!(ran.out.contains("a\\u{1b}[2J\\nb.so"), "{ran:?}");
    let json = place.run(&["inspect", "--format", "json", name]).code(0).json();
    assert_eq!((&json["files"][0]["path"], &json["files"][0]["soname"]), (&name.into(), &HOSTILE.into()));
    harmless(&place.run(&["verify", name]));
}
