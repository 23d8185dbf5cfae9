//! `gpulock dockerfile` as a user meets it.

use super::program::{GOOD, Place};

fn place() -> Place {
    let place = Place::with(&format!("{GOOD}\n[image]\nflavor = \"slim\"\n\n[env]\nNCCL_DEBUG = \"WARN\"\n"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    place
}

#[test]
fn it_is_written_and_checked() {
    let place = place();
    place.run(&["dockerfile", "--check"]).code(1).says(&["there is no Dockerfile", "gpulock dockerfile -o Dockerfile"]);
    let printed = place.run(&["dockerfile"]).code(0).says(&["image-without-digest", "python:3.11-slim-bookworm"]);
    place.run(&["dockerfile", "-o", "Dockerfile"]).code(0);
    assert_eq!(place.text("Dockerfile"), printed.out);
    assert!(printed.out.contains("\nFROM python:3.11-slim-bookworm AS python\n"));
    assert_eq!(place.run(&["dockerfile", "--check"]).code(0).out, "Dockerfile is up to date\n");
    assert_eq!(
        place.run(&["dockerfile", "--check", "-o", "Dockerfile", "-q"]).code(0).out,
        "Dockerfile is up to date\n"
    );
    place.put("Dockerfile", printed.out.replace("USER 10001", "USER root"));
    place.refuses(&["dockerfile", "--check"], 1).says(&["error[file-stale]", "Dockerfile was changed", "USER root"]);
    place.put("gpulock.toml", place.text("gpulock.toml").replace("WARN", "INFO"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    place.refuses(&["dockerfile", "--check"], 1).says(&["Dockerfile was written for another lock"]);
    place.run(&["dockerfile", "-o", "Dockerfile", "-q"]).code(0);
    place.run(&["dockerfile", "--check"]).code(0);
}

#[test]
fn digests_may_be_required() {
    place().refuses(&["dockerfile", "--require-digest"], 1).says(&[
        "error[image-without-digest]",
        "python:3.11-slim-b",
        "run `gpulock resolve` where the registry can be",
    ]);
}

#[test]
fn a_lock_without_image_gets_the_usual_one() {
    let place = Place::locked();
    let ran =
        place.run(&["dockerfile"]).code(0).says(&["note[image-not-locked]", "python:3.11-slim-bookworm is taken"]);
    assert!(ran.out.contains("FROM python:3.11-slim-bookworm AS python"));
    Place::empty().refuses(&["dockerfile"], 2).says(&["gpulock resolve"]);
}

#[test]
fn templates_are_printed_and_taken() {
    let place = place();
    place.run(&["dockerfile", "--print-template", "-o", "mine.j2"]).code(0);
    let same = place.run(&["dockerfile", "--template", "mine.j2"]).code(0).out;
    assert_eq!(same, place.run(&["dockerfile"]).code(0).out);
    place.put("mine.j2", "FROM {{ image.bse.at | reference }}\n");
    place.refuses(&["dockerfile", "--template", "mine.j2"], 2).says(&["error[template-invalid]", "mine.j2:1"]);
    place.refuses(&["dockerfile", "--template", "none.j2"], 2).says(&["none.j2"]);
}

#[test]
fn a_target_is_chosen() {
    let two =
        format!("{GOOD}[target.b]\ngpus = ['H100']\ndriver = '580'\n[image]\nos = 'ubuntu22.04'\nflavor = 'devel'\n");
    let place = Place::with(&two);
    place.run(&["resolve", "--offline", "-q"]).code(0);
    place.refuses(&["dockerfile"], 2).says(&["--target a | b"]);
    let text = place.run(&["dockerfile", "--target", "b"]).code(0).out;
    assert!(text.contains("TORCH_CUDA_ARCH_LIST=\"9.0\"") && text.contains("--target 'b'"));
}

#[test]
fn a_program_is_told_what_was_written() {
    let place = place();
    for command in [&["dockerfile"][..], &["export", "requirements"], &["export", "env"], &["export", "uv"]] {
        let arguments = [command, &["-q", "--format", "json", "-o", "made"]].concat();
        let ran = place.run(&arguments);
        assert_eq!(ran.code(0).json()["files"], serde_json::json!(["made"]), "{command:?}");
        let arguments = [command, &["-q", "--format", "json", "-o", "/dev/stdout"]].concat();
        assert_eq!(place.run(&arguments).code(0).out, place.text("made"), "{command:?}");
    }
}

#[test]
fn a_lock_whose_name_needs_quotes_is_to_be_renamed() {
    let place = place();
    std::fs::rename(place.path("gpulock.lock"), place.path("my gpu.lock")).unwrap();
    for command in [&["dockerfile"][..], &["export", "apptainer"]] {
        let ran = place.refuses(&[command, &["--lock", "my gpu.lock"]].concat(), 2);
        ran.says(&["error[usage]", "the lock is named \"my gpu.lock\"", "rename the lock"]);
    }
    place.run(&["export", "gitlab", "--lock", "my gpu.lock"]).code(0);
}

/// As `gpulock check` judges it.
#[test]
fn carriage_returns_are_told_of_and_no_difference() {
    let place = place();
    let text = place.run(&["dockerfile"]).code(0).out.replace('\n', "\r\n");
    place.put("Dockerfile", &text);
    let ran = place.run(&["dockerfile", "--check"]).code(0).says(&["note[file-stale]", "carriage returns"]);
    assert_eq!(ran.out, "Dockerfile is up to date\n");
    assert!(place.run(&["check", "--matrix-age", "99999"]).code(0).out.contains("note[file-stale]"));
    // What is changed besides is found in its line.
    place.put("Dockerfile", text.replace("USER 10001", "USER root"));
    place.refuses(&["dockerfile", "--check"], 1).says(&["error[file-stale]", "Dockerfile was changed", "USER root"]);
}

#[test]
fn a_file_of_another_target_is_said_to_be_one() {
    let place = Place::with(&format!("{GOOD}[target.b]\ngpus = ['H100']\ndriver = '580'\n"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    place.run(&["dockerfile", "--target", "b", "-o", "Dockerfile"]).code(0);
    place
        .refuses(&["dockerfile", "--check", "--target", "a"], 1)
        .says(&["Dockerfile is the Dockerfile of target `b`, and `a` is asked for", "--target b"]);
    place.run(&["dockerfile", "--check", "--target", "b"]).code(0);
}

/// A failure for programs is no Dockerfile.
#[test]
fn a_check_writes_nothing() {
    let place = place();
    let check = ["dockerfile", "--check", "-q", "--format", "json", "-o", "Dockerfile"];
    let before = place.all();
    let ran = place.run(&check).code(1);
    assert_eq!(ran.json()["errors"][0]["code"], "file-missing", "{ran:?}");
    assert!(place.all() == before);
    place.put("Dockerfile", "FROM scratch\n");
    let ran = place.run(&check).code(1);
    assert_eq!(ran.json()["errors"][0]["code"], "file-stale", "{ran:?}");
    assert_eq!(place.text("Dockerfile"), "FROM scratch\n");
}

/// The verify stage has the manifest beside the lock, whichever of the two files it is.
#[test]
fn the_levels_of_the_manifest_reach_the_image() {
    let place = Place::empty();
    let tool = GOOD.replace("[stack]", "[tool.gpulock.stack]").replace("[target.a]", "[tool.gpulock.target.a]");
    let levels = "[tool.gpulock.checks]\nshadowed-library = { level = \"off\", reason = \"known\" }\n";
    for (file, text) in [
        ("pyproject.toml", format!("[project]\nname = \"demo\"\nversion = \"1\"\n{tool}{levels}")),
        ("gpulock.toml", format!("{GOOD}{}", levels.replace("tool.gpulock.", ""))),
    ] {
        place.put(file, text);
        place.run(&["resolve", "--offline", "-q"]).code(0);
        let text = place.run(&["dockerfile", "-q"]).code(0).out;
        let copy = text.lines().find_map(|line| line.strip_prefix("COPY gpulock ")).unwrap();
        let sources = copy.strip_suffix(" ./").unwrap();
        std::fs::create_dir(place.path("stage")).unwrap();
        // As a builder reads patterns: what they do not match is passed over.
        let copied = format!("for one in {sources}; do [ ! -e \"$one\" ] || cp \"$one\" stage; done; ls stage");
        let copied =
            String::from_utf8(place.shell(&copied).env("PATH", "/usr/bin:/bin").output().unwrap().stdout).unwrap();
        assert_eq!(copied, format!("gpulock.lock\n{file}\n"));
        std::fs::remove_dir_all(place.path("stage")).unwrap();
        std::fs::remove_file(place.path(file)).unwrap();
        std::fs::remove_file(place.path("gpulock.lock")).unwrap();
    }
}
