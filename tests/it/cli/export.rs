//! Formats of `gpulock export` that a template makes, as a user meets them: written, checked, edited, stale.

use std::fs;

use gpulock::render::{FILES, Format};

use super::program::{GOOD, Place};

const IMAGE: [&str; 2] = ["--image", "registry.invalid/team/train:1"];

/// A project of one and of two targets, one of them on aarch64.
fn places() -> [(Place, &'static [&'static str]); 2] {
    let env = "\n[image]\nos = \"debian12\"\n[env]\nNCCL_DEBUG = \"WARN\"\nODD = \"it's {a}: \\\"b\\\"\"\n";
    let arm = "[target.arm]\nplatform = \"linux-aarch64\"\ngpus = [\"GH200\"]\ndriver = \"580\"\n";
    let place = |manifest: &str| {
        let place = Place::with(manifest);
        place.run(&["resolve", "--offline", "-q"]).code(0);
        place
    };
    [
        (place(&format!("{GOOD}{env}")), &[]),
        (place(&format!("{}{arm}{env}", GOOD.replace("2.8.0", ">=2.11"))), &["--target", "arm"]),
    ]
}

#[test]
fn every_format_is_written_and_held_against_the_lock() {
    for (place, target) in places() {
        let check = |code: i32| place.run(&["check", "--matrix-age", "99999"]).code(code).out;
        for format in FILES {
            let file = format!("deploy.{}", format.name);
            let export = |output: &str| {
                place.run(&[&["export", format.name, "-o", output], &IMAGE[..], target].concat()).code(0);
                place.text(output)
            };
            let text = export(&file);
            assert!(check(0).contains("; 1 file"), "{}", format.name);
            // By hand.
            let line = text.lines().rfind(|line| !line.trim_start().starts_with(format.comment.trim())).unwrap();
            place.put(&file, text.replacen(&format!("\n{line}"), &format!("\n{line} "), 1));
            let found = check(1);
            assert!(
                found.contains("error[file-stale]") && found.contains(&format!("{file} was changed since")),
                "{found}"
            );
            // The command that it names writes it anew.
            let command = found.split("anew: `gpulock ").nth(1).unwrap().split('`').next().unwrap();
            assert!(place.shell(&format!("{} {command}", env!("CARGO_BIN_EXE_gpulock"))).status().unwrap().success());
            assert_eq!(place.text(&file), text, "{command}");
            // For another lock.
            let manifest = place.text("gpulock.toml");
            place.put("gpulock.toml", manifest.replace("WARN", "INFO"));
            place.run(&["resolve", "--offline", "-q"]).code(0);
            assert!(check(1).contains(&format!("{file} was written for another lock")), "{}", format.name);
            place.put("gpulock.toml", manifest);
            place.run(&["resolve", "--offline", "-q"]).code(0);
            check(0);
            fs::remove_file(place.path(&file)).unwrap();
        }
    }
}

#[test]
fn the_platform_is_that_of_the_target() {
    let [_, (place, target)] = places();
    for (format, words) in
        [("compose", "linux/arm64"), ("k8s", "kubernetes.io/arch: arm64"), ("conda", "python_abi 3.11.*")]
    {
        let text = place.run(&[&["export", format], &IMAGE[..], target].concat()).code(0).out;
        assert!(text.contains(words), "{text}");
        place.refuses(&[&["export", format], &IMAGE[..]].concat(), 2).says(&["--target a | arm"]);
    }
}

#[test]
fn formats_are_listed_with_what_they_are() {
    let place = Place::empty();
    let help = place.run(&["export", "--help"]).code(0).out;
    for format in Format::all() {
        assert!(help.contains(&format!("- {}:", format.name())), "{}\n{help}", format.name());
    }
    place.refuses(&["export", "composer"], 2).says(&["compose"]);
}

#[test]
fn what_is_missing_or_cannot_be_held_is_told() {
    let place = Place::locked();
    place.refuses(&["export", "k8s"], 2).says(&["error[image-not-named]", "--image registry.example/NAME:TAG"]);
    place.refuses(&["export", "k8s", "--image", "a b"], 2).says(&["\"a b\" is not the name of an image"]);
    place.refuses(&["export", "k8s", "--image", "a", "--gpus", "0"], 2).says(&["--gpus"]);
    place.refuses(&["export", "apptainer"], 1).says(&["error[image-missing]", "add [image] to gpulock.toml"]);
    let place = Place::with(&format!("{GOOD}[env]\nA = \"$HOME\"\n"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    place.refuses(&["export", "env"], 1).says(&["error[env-value]", "env cannot hold the value of A", "`$`", "[env]"]);
    let text = place.run(&["export", "compose", "--gpus", "2", "--", "python", "-c", "print('$A')"]).code(0).out;
    assert!(
        text.contains("count: 2") && text.contains("- \"print('$$A')\"") && text.contains("\"A\": \"$$HOME\""),
        "{text}"
    );
}

#[test]
fn templates_are_printed_and_taken() {
    let place = Place::with(&format!("{GOOD}[image]\nos = \"debian12\"\n"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    for format in FILES {
        let export = |more: &[&str]| place.run(&[&["export", format.name], &IMAGE[..], more].concat()).code(0).out;
        place.run(&["export", format.name, "--print-template", "-o", "mine.j2"]).code(0);
        assert_eq!(export(&["--template", "mine.j2"]), export(&[]));
        place.put("mine.j2", "{{ target.nmae | json }}\n");
        let wrong = [&["export", format.name, "--template", "mine.j2"], &IMAGE[..]].concat();
        place.refuses(&wrong, 2).says(&["error[template-invalid]", "mine.j2:1", "--print-template"]);
    }
    place
        .refuses(&["export", "requirements", "--print-template"], 2)
        .says(&["no template makes requirements", "compose"]);
}
