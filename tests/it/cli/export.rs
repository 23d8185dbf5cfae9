//! Formats of `gpulock export` that a template makes, as a user meets them: written, checked, edited, stale.

use std::fs;

use gpulock::render::{FILES, Format, Opt};

use super::program::{GOOD, Place};

const IMAGE: [&str; 2] = ["--image", "registry.invalid/team/train:1"];

/// An image for the formats that run one.
fn image(format: &str) -> &'static [&'static str] {
    let format: Format = format.parse().unwrap();
    if format.takes().contains(&Opt::Image) { &IMAGE } else { &[] }
}

/// A project of one and of two targets, one of them on aarch64.
fn places() -> [(Place, &'static [&'static str]); 2] {
    let env = "\n[image]\nos = \"debian12\"\n[env]\nNCCL_DEBUG = \"WARN\"\nODD = \"{a}: [b] = c; - d\"\n";
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
                place.run(&[&["export", format.name, "-o", output], image(format.name), target].concat()).code(0);
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
        let text = place.run(&[&["export", format], image(format), target].concat()).code(0).out;
        assert!(text.contains(words), "{text}");
        place.refuses(&[&["export", format], image(format)].concat(), 2).says(&["--target a | arm"]);
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
    for format in ["k8s", "slurm", "compose"] {
        place
            .refuses(&["export", format, "--image", "docker://a/b"], 2)
            .says(&["\"docker://a/b\" is not the name of an image", "leave out `docker://`: --image a/b"]);
    }
    place.refuses(&["export", "k8s", "--image", "a", "--gpus", "0"], 2).says(&["--gpus"]);
    let place = Place::with(&format!("{GOOD}[env]\nA = \"$HOME\"\n"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    place.refuses(&["export", "env"], 1).says(&["error[env-value]", "env cannot hold A of [env]", "`$`", "[env]"]);
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
        let export =
            |more: &[&str]| place.run(&[&["export", format.name], image(format.name), more].concat()).code(0).out;
        place.run(&["export", format.name, "--print-template", "-o", "mine.j2"]).code(0);
        assert_eq!(export(&["--template", "mine.j2"]), export(&[]));
        place.put("mine.j2", "{{ target.nmae | json }}\n");
        let wrong = [&["export", format.name, "--template", "mine.j2"], image(format.name)].concat();
        place.refuses(&wrong, 2).says(&["error[template-invalid]", "mine.j2:1", "--print-template"]);
    }
    place
        .refuses(&["export", "requirements", "--print-template"], 2)
        .says(&["no template makes requirements", "compose"]);
}

#[test]
fn options_without_effect_are_refused() {
    let place = Place::locked();
    fs::create_dir(place.path("wheels")).unwrap();
    place.put("mine.j2", "");
    for format in Format::all() {
        for (flag, given, takers) in [
            ("--image", &["--image", "a:1"][..], &["compose", "devcontainer", "k8s", "slurm"][..]),
            ("--gpus", &["--gpus", "2"], &["compose", "k8s", "slurm"]),
            ("--constraint", &["--constraint", "a100"], &["slurm"]),
            ("--dockerfile", &["--dockerfile", "Dockerfile"], &["devcontainer"]),
            ("--folder", &["--folder", "jobs"], &["github", "gitlab"]),
            ("--pyproject", &["--pyproject", "pyproject.toml"], &["uv"]),
            ("--wheels", &["--wheels", "wheels"], &["pylock"]),
            ("-- COMMAND", &["--", "python"], &["compose", "k8s", "slurm"]),
        ] {
            if takers.contains(&format.name()) {
                continue;
            }
            let words = [&format!("{flag} has no effect on {format}"), "formats that take it: ", &takers.join(", ")];
            place.refuses(&[&["export", format.name()], given].concat(), 2).says(&words);
        }
    }
    place
        .refuses(&["export", "uv", "--template", "mine.j2"], 2)
        .says(&["--template has no effect on uv", "conda, env"]);
    // A variable is for all commands of a job.
    let mut command = place.command(&["export", "requirements"]);
    command.env("GPULOCK_IMAGE", "a:1").env("GPULOCK_GPUS", "2").env("GPULOCK_EXPORT_TEMPLATE", "mine.j2");
    super::program::Ran::of(command.output().unwrap()).code(0);
}

#[test]
fn a_development_container_finds_its_dockerfile() {
    let place = Place::locked();
    fs::create_dir_all(place.path(".devcontainer/gpu")).unwrap();
    for (output, dockerfile, context) in [
        (".devcontainer.json", "Dockerfile", "."),
        (".devcontainer/devcontainer.json", "../Dockerfile", ".."),
        (".devcontainer/gpu/devcontainer.json", "../../Dockerfile", "../.."),
    ] {
        place.run(&["export", "devcontainer", "-o", output]).code(0);
        let text = place.text(output);
        let build = format!("\"dockerfile\": \"{dockerfile}\",\n    \"context\": \"{context}\"");
        assert!(text.contains(&build) && text.contains("\n  \"remoteUser\": \"app\","), "{text}");
        // As that file sees it.
        let found = place.path(output).parent().unwrap().join(dockerfile);
        fs::write(&found, "FROM scratch\n").unwrap();
        assert_eq!(found.canonicalize().unwrap(), place.path("Dockerfile").canonicalize().unwrap());
        fs::remove_file(found).unwrap();
    }
    place.run(&["check", "--matrix-age", "99999"]).code(0);
    let text = place.run(&["export", "devcontainer", "--dockerfile", "../docker/gpu"]).code(0).out;
    assert!(text.contains("\"context\": \"../docker\""), "{text}");
    place.refuses(&["export", "devcontainer", "--dockerfile", "x", "--image", "a:1"], 2).says(&["--image"]);
}

/// A project in a folder of a repository.
#[test]
fn jobs_run_where_the_project_is() {
    let place = Place::empty();
    fs::create_dir_all(place.path("jobs/a b")).unwrap();
    fs::create_dir(place.path(".git")).unwrap();
    place.put("jobs/a b/gpulock.toml", GOOD);
    let manifest = ["--manifest", "jobs/a b/gpulock.toml"];
    place.run(&[&["resolve", "--offline", "-q"], &manifest[..]].concat()).code(0);
    for (format, words) in [
        ("github", &["working-directory: \"jobs/a b\""][..]),
        ("gitlab", &["- \"cd 'jobs/a b'\"", "/.gpulock/bin/gpulock check --lock 'gpulock.lock'"]),
    ] {
        let output = format!("jobs/a b/{format}.yml");
        place.run(&[&["export", format, "-o", &output], &manifest[..]].concat()).code(0);
        let text = place.text(&output);
        assert!(words.iter().all(|words| text.contains(words)), "{text}");
        let said = place.run(&[&["export", format, "--folder", "./jobs//a b/"], &manifest[..]].concat()).code(0).out;
        assert_eq!(said, text);
        let root = place.run(&[&["export", format, "--folder", "."], &manifest[..]].concat()).code(0).out;
        assert!(!root.contains("jobs/a b"), "{root}");
        place
            .refuses(&[&["export", format, "--folder", "../x"], &manifest[..]].concat(), 2)
            .says(&["is no folder inside"]);
    }
    place.run(&[&["check", "--matrix-age", "99999"], &manifest[..]].concat()).code(0);
}

#[test]
fn an_image_is_chosen_where_the_lock_has_none() {
    let place = Place::locked();
    let ran =
        place.run(&["export", "apptainer", "-o", "image.def"]).code(0).says(&["note[image-not-locked]", "[image]"]);
    assert_eq!(ran.out, "");
    assert!(place.text("image.def").contains("\nFrom: python:3.11-slim-"));
    assert!(place.run(&["check", "--matrix-age", "99999"]).code(0).out.contains("; 1 file"));
    place.put("image.def", place.text("image.def").replace("exec python", "exec python3"));
    place.run(&["check", "--matrix-age", "99999"]).code(1);
}

#[test]
fn a_variable_with_a_nul_is_refused_where_it_stands() {
    let place = Place::with(&format!("{GOOD}[env]\nA = \"a\\u0000b\"\n"));
    place.refuses(&["resolve", "--offline"], 2).says(&["gpulock.toml:9", "`A` in [env] has a NUL"]);
}
