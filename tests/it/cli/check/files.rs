//! Which files of a project `gpulock check` judges, and what it says of those that it cannot.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::{check, edit, found, project};
use crate::cli::program::{GOOD, Place};
use crate::report::findings::valid_sarif;

#[test]
fn a_pylock_is_compared_but_for_its_addresses() {
    let place = Place::locked();
    place.run(&["export", "pylock", "--offline", "--wheels", "wheels", "-o", "pylock.toml"]).code(0);
    assert_eq!(found(&place, &[], 0), [""; 0]);
    let pylock = place.text("pylock.toml");
    // As an index that lists addresses would give it.
    place.put("pylock.toml", pylock.replace("path = \"wheels/", "url = \"https://files.invalid/"));
    assert_eq!(found(&place, &[], 0), [""; 0]);
    let hash = pylock.split("sha256 = \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    place.put("pylock.toml", pylock.replace(&hash, &"0".repeat(64)));
    assert_eq!(found(&place, &[], 1), ["error file-stale"]);
    place.put("pylock.toml", pylock.replace("path = \"wheels/torch-", "nowhere = \"torch-"));
    assert_eq!(found(&place, &[], 1), ["error file-stale"]);
}

#[test]
fn templates_are_known_by_their_hash() {
    let place = project();
    fs::create_dir(place.path("templates")).unwrap();
    place.put("mine.j2", "{% extends \"Dockerfile\" %}\n{% block last %}\nENV MINE=1\n{% endblock %}\n");
    place.run(&["dockerfile", "--template", "mine.j2", "-o", "Dockerfile", "-q"]).code(0);
    assert_eq!(found(&place, &[], 0), [""; 0]);
    edit(&place, "Dockerfile", "MINE=1", "MINE=2");
    assert_eq!(found(&place, &[], 1), ["error file-stale"]);
    fs::rename(place.path("mine.j2"), place.path("mine.txt")).unwrap();
    let ran = check(&place, &[]).code(1);
    assert!(ran.out.contains("was written by a template that is neither this release's own nor here"), "{}", ran.out);
    // Whose template it was is not known: no command drops it without a word.
    let hash = "sha256:";
    assert!(ran.out.contains(&format!("hash of its template: {hash}")), "{}", ran.out);
    let fix = "where a template of your own wrote it, write it anew by that as it is now: `gpulock dockerfile --template FILE -o \
               Dockerfile`; where an earlier release's own wrote it: `gpulock dockerfile -o Dockerfile`";
    assert!(ran.out.contains(fix) && !ran.out.contains("fix: write it anew"), "{}", ran.out);
    place.put("other.j2", "{% extends \"Dockerfile\" %}\n{% block last %}\nENV MINE=3\n{% endblock %}\n");
    let ran = check(&place, &[]).code(1);
    assert!(ran.out.contains("as it is now: `gpulock dockerfile --template other.j2 -o Dockerfile`"), "{}", ran.out);
    place.put("third.j2", "");
    let ran = check(&place, &[]).code(1);
    assert!(ran.out.contains("as it is now (here are other.j2, third.j2): `gpulock dockerfile --template FILE"));
    // The command that is proposed writes precisely this file.
    let ran = check(&place, &["--template", "mine.txt"]).code(1);
    assert!(ran.out.contains("Dockerfile was changed since it was written"), "{}", ran.out);
    assert!(ran.out.contains("`gpulock dockerfile --template mine.txt -o Dockerfile`"), "{}", ran.out);
    let words = ["error[file-stale]", "`gpulock dockerfile --target a --template mine.txt -o Dockerfile`"];
    let command = ["dockerfile", "--check", "-q", "--target", "a", "--template", "mine.txt"];
    place.refuses(&command, 1).says(&words);
    fs::remove_file(place.path("Dockerfile")).unwrap();
    place.refuses(&command, 1).says(&["error[file-missing]", words[1]]);
}

#[test]
fn dockerfiles_are_judged_whoever_wrote_them() {
    let place = Place::empty();
    place.put("Dockerfile.train", "FROM nvidia/cuda:11.4.2-base-ubuntu20.04\nENV NCCL_TIMEOUT=1\n");
    place.put("Dockerfile.dockerignore", "FROM nvidia/cuda:latest\n");
    place.put("other.txt", "FROM nvidia/cuda:12.8.1-base-ubuntu22.04\nFROM ubuntu:latest\n");
    assert_eq!(found(&place, &[], 1), ["error dockerfile-image-deleted", "warning env-variable-unknown"]);
    let ran = check(&place, &[]).code(1);
    assert!(ran.out.contains(".: 1 file\n") && ran.out.contains("--> Dockerfile.train:2:5"), "{}", ran.out);
    let both = found(&place, &["other.txt", "Dockerfile.train"], 1);
    assert_eq!(both.len(), 3, "{both:?}");
    assert_eq!(found(&place, &["./Dockerfile.train"], 1).len(), 2);
    assert_eq!(
        found(&place, &["--exclude", "./Dockerfile.train", "other.txt"], 0),
        ["warning dockerfile-floating-tag"]
    );
    check(&place, &["none"]).code(2).says(&["none does not exist"]);
    for code in ["dockerfile-image-deleted", "dockerfile-floating-tag"] {
        assert!(place.run(&["explain", code]).code(0).out.starts_with(&format!("# {code}\n")));
    }
}

/// Which files are Dockerfiles by their name, and which are called after one and are none.
#[test]
fn names_say_which_files_are_dockerfiles() {
    let place = Place::empty();
    let put = |name: &str| place.put(name, "FROM nvidia/cuda:latest\n");
    let judged = [
        "Containerfile",
        "Containerfile-gpu",
        "Dockerfile",
        "Dockerfile-cuda",
        "Dockerfile-cuda12.1",
        "Dockerfile.cuda12.1",
        "Dockerfile.gpu",
        "Dockerfile_gpu",
        "gpu.Dockerfile",
    ];
    judged.iter().for_each(|name| put(name));
    for other in [
        "Dockerfile.md",
        "Dockerfile.bak",
        "Dockerfile.gpu.orig",
        "Dockerfile.j2",
        "Dockerfile.rst",
        "Dockerfile.txt",
        "Dockerfile.template",
        "Dockerfile~",
        "Dockerfile-lint.yaml",
        "dockerfile_parser.py",
        "Dockerfiles",
    ] {
        put(other);
    }
    let report = check(&place, &["--format", "json"]).code(1).json();
    let subjects: Vec<&str> =
        report["findings"].as_array().unwrap().iter().map(|one| one["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects, judged);
    // What is named is judged whatever it is called.
    assert_eq!(found(&place, &["Dockerfile.md"], 1).len(), judged.len() + 1);
}

#[test]
fn a_dockerfile_of_ones_own_has_levels_and_a_lock() {
    let place = Place::locked();
    place.put("requirements.txt", "numpy==${CUDNN_VERSION}\n");
    let text = "FROM python:3.11-slim\nARG CUDNN_VERSION=1\nRUN pip install torch -r requirements.txt\n";
    place.put("Dockerfile", text);
    assert_eq!(found(&place, &[], 0), ["warning dockerfile-without-hashes"]);
    // What pip reads of the file beside it is used, and is not where it does not say so.
    place.put("requirements.txt", "numpy\n");
    let both = ["warning dockerfile-without-hashes", "warning dockerfile-arg-unused"];
    assert_eq!(found(&place, &[], 0), both);
    let checks = "[checks]\ndockerfile-without-hashes = \"error\"\n\
                  dockerfile-arg-unused = { level = \"off\", reason = \"a label to come\" }\n\
                  dockerfile-floating-tag = { level = \"note\", reason = \"internal images\" }\n";
    place.put("gpulock.toml", format!("{GOOD}{checks}"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    assert_eq!(found(&place, &[], 1), ["error dockerfile-without-hashes", "note exception-unused"]);
}

#[test]
fn pins_in_a_pyproject_are_compared() {
    let two = format!("{GOOD}[target.b]\ngpus = ['H100']\ndriver = '580'\n");
    let place = Place::with(&two);
    place.run(&["resolve", "--offline", "-q"]).code(0);
    place.put("pyproject.toml", "[project]\nname = \"demo\"\nversion = \"1\"\ndependencies = [\"click\"]\n");
    // Of no concern before gpulock has written into it.
    assert!(check(&place, &[]).code(0).out.contains("; 0 files"));
    place.run(&["export", "uv", "--target", "b"]).code(0);
    assert_eq!(found(&place, &[], 0), [""; 0]);
    assert!(check(&place, &[]).code(0).out.contains("; 1 file"));
    let (written, unix) = (place.text("pyproject.toml").replace('\n', "\r\n"), place.text("pyproject.toml"));
    place.put("pyproject.toml", written);
    assert_eq!(found(&place, &[], 0), [""; 0]);
    place.put("pyproject.toml", unix);
    // What is the user's own may change.
    edit(&place, "pyproject.toml", "[\"click\"", "[\"click>8\"");
    assert_eq!(found(&place, &[], 0), [""; 0]);
    edit(&place, "pyproject.toml", "torch==2.8.0", "torch==2.7.0");
    assert_eq!(found(&place, &[], 1), ["error file-stale"]);
    let says =
        ["pyproject.toml has other pins than the lock, first in line ", "torch==2.8.0", "gpulock export uv --target "];
    let ran = check(&place, &[]).code(1);
    says.iter().for_each(|words| assert!(ran.out.contains(words), "`{words}` is not in\n{}", ran.out));
    place.run(&["export", "uv", "--target", "b"]).code(0);
    place.put("gpulock.toml", two.replace("2.8.0", "2.7.1"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    assert_eq!(found(&place, &[], 1), ["error file-stale"]);
    edit(&place, "pyproject.toml", "[project]", "[project");
    assert!(check(&place, &[]).code(1).out.contains("is not what this lock gives"));
}

#[test]
fn what_cannot_be_read_is_a_finding_beside_the_others() {
    let place = project();
    fs::write(place.path("Dockerfile.latin"), b"FROM python:3.11-slim\n# caf\xe9\n").unwrap();
    place.put("Dockerfile.large", "# x\n".repeat(1 << 19));
    assert!(Command::new("mkfifo").arg(place.path("Dockerfile.pipe")).status().unwrap().success());
    symlink("nowhere", place.path("Dockerfile.link")).unwrap();
    symlink("Dockerfile.loop", place.path("Dockerfile.loop")).unwrap();
    // A folder of that name is one, and a link to a Dockerfile is that.
    fs::create_dir(place.path("dockerfile")).unwrap();
    place.put("dockerfile/gpu.docker", "FROM nvidia/cuda:11.4.2-base-ubuntu20.04\n");
    symlink("dockerfile/gpu.docker", place.path("gpu.Dockerfile")).unwrap();
    symlink("Dockerfile", place.path("Containerfile")).unwrap();
    symlink(".", place.path("round")).unwrap();
    let wanted = [&["error dockerfile-image-deleted"][..], &["warning file-unchecked"; 5]].concat();
    assert_eq!(found(&place, &[], 1), wanted);
    let ran = check(&place, &[]).code(1);
    for words in [
        "Dockerfile.latin is not UTF-8 text, so it is not judged",
        "Dockerfile.large is too large",
        "Dockerfile.pipe is a named pipe",
        "Dockerfile.link does not exist",
    ] {
        assert!(ran.out.contains(words), "`{words}` is not in\n{}", ran.out);
    }
    // What is named must not pass in silence; one that is not there is mistyped.
    let named = ["Dockerfile.latin", "Dockerfile.pipe", "deploy"];
    let errors = found(&place, &named, 1).iter().filter(|one| *one == "error file-unchecked").count();
    assert_eq!(errors, 3);
    check(&place, &["none.Dockerfile"]).code(2).says(&["none.Dockerfile does not exist"]);
    let excluded = ["--exclude", "gpu.Dockerfile", "--exclude", "dockerfile"];
    assert_eq!(found(&place, &excluded, 0), ["warning file-unchecked"; 5]);
    // A file that gpulock wrote, and that is no text any more.
    let mut bytes = fs::read(place.path("requirements.txt")).unwrap();
    bytes.extend(b"\xff\n");
    fs::write(place.path("requirements.txt"), bytes).unwrap();
    assert!(found(&place, &excluded, 1).contains(&"error file-unchecked".to_owned()));
    edit(&place, "deploy/constraints.txt", "torch==2.8.0", "torch==2.7.0");
    assert_eq!(found(&place, &excluded, 1)[..2], ["error file-unchecked", "error file-stale"]);
}

#[test]
fn a_damaged_header_hides_no_file() {
    let whole = project();
    let hash = whole.text("requirements.txt").split("# Lock: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    for (name, from, to, says) in [
        ("requirements.txt", format!("# Lock: {hash}\n"), "", "the header of requirements.txt names no lock"),
        (
            "requirements.txt",
            format!("# Lock: {hash}"),
            "# Lock: sha256:0",
            "the header of requirements.txt names no lock",
        ),
        ("requirements.txt", hash.clone(), &"0".repeat(71), "the header of requirements.txt names no lock"),
        ("requirements.txt", "# Written by `gpulock ".into(), "# By `", "does not say what wrote it"),
        ("requirements.txt", "export requirements`".into(), "export all`", "this release has no `gpulock export all`"),
        ("Dockerfile", "# Written by".into(), "# From", "the header of Dockerfile does not say what wrote it"),
        ("Dockerfile", "# Template: ".into(), "# By: ", "was written by a template that is neither"),
        ("deploy/constraints.txt", "# Target: a".into(), "# Target: c", "is not what this lock gives"),
    ] {
        let place = project();
        edit(&place, name, &from, to);
        let ran = check(&place, &[]).code(1);
        assert!(ran.out.contains(says) && ran.out.contains("1 error"), "{name} {from} `{says}` is not in\n{}", ran.out);
    }
    // What only speaks of such files is none.
    whole.put("notes.md", "# Written by `gpulock resolve` is what a lock says\n");
    assert_eq!(found(&whole, &[], 0), [""; 0]);
}

#[test]
fn a_file_without_its_lock_is_not_clean() {
    let place = project();
    fs::remove_file(place.path("gpulock.lock")).unwrap();
    fs::remove_file(place.path("gpulock.toml")).unwrap();
    assert_eq!(found(&place, &[], 1), ["error file-unchecked"; 3]);
    let ran = check(&place, &[]).code(1);
    assert!(ran.out.contains("the lock that it was written from is not here"), "{}", ran.out);
}

/// As version control writes files where it is told to (`core.autocrlf`).
#[test]
fn ends_of_lines_are_no_edit() {
    let place = project();
    place.run(&["export", "env", "-o", "job.env"]).code(0);
    for name in ["Dockerfile", "requirements.txt", "deploy/constraints.txt", "job.env", "gpulock.lock", "gpulock.toml"]
    {
        place.put(name, place.text(name).replace('\n', "\r\n"));
    }
    // In an env file, a carriage return becomes part of each value.
    place.run(&["export", "slurm", "-q", "-o", "job.sh", "--", "true"]).code(0);
    place.run(&["export", "apptainer", "-q", "-o", "job.def"]).code(0);
    for name in ["job.sh", "job.def"] {
        place.put(name, place.text(name).replace('\n', "\r\n"));
    }
    assert_eq!(found(&place, &[], 1), [["error file-stale"; 3], ["note file-stale"; 3]].concat());
    let ran = check(&place, &[]).code(1);
    assert!(ran.out.contains("add `job.env text eol=lf` to .gitattributes"), "{}", ran.out);
    edit(&place, "requirements.txt", "torch==2.8.0", "torch==2.7.0");
    let ran = check(&place, &[]).code(1);
    assert!(ran.out.contains("requirements.txt was changed since it was written, first in line "), "{}", ran.out);
    assert!(ran.out.contains("the lock gives: `torch==2.8.0 \\`"), "{}", ran.out);
}

/// The command that is proposed is for the target that the file names, whatever else is not known of it.
#[test]
fn the_target_is_that_of_the_file() {
    let place = Place::with(&format!("{GOOD}\n[target.desk]\ngpus = ['H100']\ndriver = '580'\n\n[image]\n"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    place.run(&["dockerfile", "-q", "--target", "desk", "-o", "d.Dockerfile"]).code(0);
    place.run(&["export", "slurm", "-q", "--target", "desk", "-o", "job.sh", "--", "true"]).code(0);
    let whole = ["d.Dockerfile", "job.sh"].map(|name| (name, place.text(name)));
    for (name, text) in &whole {
        let hash = text.split("Template: sha256:").nth(1).unwrap()[..64].to_owned();
        place.put(name, text.replace(&hash, &"0".repeat(64)));
    }
    let ran = check(&place, &[]).code(1);
    for command in
        ["`gpulock dockerfile --target desk -o d.Dockerfile`", "`gpulock export slurm --target desk -o job.sh"]
    {
        assert!(ran.out.contains(command), "{command} is not in\n{}", ran.out);
    }
    assert!(!ran.out.contains("--target a"), "{}", ran.out);
    whole.iter().for_each(|(name, text)| place.put(name, text));
    place.put("gpulock.toml", place.text("gpulock.toml").replace("[target.desk]", "[target.node]"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    let ran = check(&place, &[]).code(1);
    for (name, command) in [("d.Dockerfile", "dockerfile"), ("job.sh", "export slurm")] {
        let fix = format!(
            "the lock has no target desk any more: remove {name}, or, for one of a, node, write it anew: \
             `gpulock {command} --target TARGET"
        );
        assert!(ran.out.contains(&fix), "`{fix}` is not in\n{}", ran.out);
    }
}

/// What cannot be read as a whole has a place too, and the summary names the program alone.
#[test]
fn a_file_that_is_no_lock_is_the_place() {
    let place = project();
    place.put("gpulock.lock", "");
    for is_folder in [false, true] {
        if is_folder {
            fs::remove_file(place.path("gpulock.lock")).unwrap();
            fs::create_dir(place.path("gpulock.lock")).unwrap();
        }
        let log = valid_sarif(&check(&place, &["--format", "sarif"]).code(2).out);
        let at = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
        assert_eq!(at, "gpulock.lock", "{log:#}");
        let ran = check(&place, &["--format", "github"]).code(2);
        assert!(ran.out.contains("file=gpulock.lock") && ran.out.contains("gpulock: 1 error"), "{}", ran.out);
    }
}
