//! Which files are the project's: those of others beside and below it, jobs of CI above it, and what is named.

use std::fs;

use super::{check, edit, found, project};
use crate::cli::program::{GOOD, Place, Ran};

#[test]
fn others_files_are_passed_over() {
    let place = project();
    let stale = place.text("requirements.txt").replacen("torch==2.8.0", "torch==2.7.0", 1);
    for folder in ["node_modules", ".venv", "other", "vendored"] {
        fs::create_dir(place.path(folder)).unwrap();
        place.put(&format!("{folder}/requirements.txt"), &stale);
    }
    place.put(".venv/pyvenv.cfg", "");
    place.put("other/gpulock.toml", GOOD);
    assert_eq!(found(&place, &[], 1), ["error file-stale"]);
    assert_eq!(found(&place, &["--exclude", "vendored"], 0), [""; 0]);
}

/// What is another project is passed over and named, however that says what it wants; its files are held against its lock.
#[test]
fn other_projects_are_passed_over_and_named() {
    let place = project();
    let of = |folder: &str, name: &str, manifest: &str| {
        fs::create_dir(place.path(folder)).unwrap();
        place.put(&format!("{folder}/{name}"), manifest);
        let ran = |arguments: &[&str]| {
            let mut command = place.command(arguments);
            Ran::of(command.current_dir(place.path(folder)).output().unwrap())
        };
        let one_off = ["--gpu", "L4", "--python", "3.11", "--torch", "2.8.0"];
        let more: &[&str] = if name == "README" { &one_off } else { &[] };
        ran(&[&["resolve", "--offline", "-q"], more].concat()).code(0);
        ran(&["export", "requirements", "-o", "requirements.txt"]).code(0);
    };
    let other = GOOD.replacen("[target.a]", "[target.b]", 1);
    of("other", "gpulock.toml", &other);
    let table = |line: &str| line.replacen('[', "[tool.gpulock.", 1);
    let lines: Vec<String> =
        other.lines().map(|line| if line.starts_with('[') { table(line) } else { line.into() }).collect();
    of("pyproject", "pyproject.toml", &format!("[project]\nname = 'x'\nversion = '1'\n{}\n", lines.join("\n")));
    of("alone", "README", "made by flags");
    fs::create_dir(place.path("third")).unwrap();
    place.put("third/.git", "gitdir: ../.git/modules/third\n");
    place.put("third/Dockerfile", "FROM nvidia/cuda:latest\n");
    // A file of another project may have to stand elsewhere.
    fs::create_dir_all(place.path(".github/workflows")).unwrap();
    fs::rename(place.path("other/requirements.txt"), place.path("other.txt")).unwrap();
    assert_eq!(found(&place, &[], 0), [""; 0]);
    let out = check(&place, &[]).code(0).out;
    for said in [
        "skipped, projects of their own below: alone, other, pyproject and 1 more: file-stale",
        "written for other locks: other.txt",
    ] {
        assert!(out.contains(said), "{out}");
    }
    // Without a project here, neither is one judged that is not this one's.
    for name in ["gpulock.toml", "gpulock.lock", "Dockerfile", "requirements.txt", "deploy/constraints.txt"] {
        fs::remove_file(place.path(name)).unwrap();
    }
    let ran = check(&place, &[]).code(3);
    assert!(ran.out.contains("projects of their own below: alone, other, pyproject"), "{}", ran.out);
}

/// Two manifests with a lock each may lie in one folder; a copy of the lock as it was is no lock of another project.
#[test]
fn locks_of_other_manifests_lie_beside_each_other() {
    let place = project();
    place.put("other.toml", GOOD.replacen("[target.a]", "[target.b]", 1));
    let at = ["--manifest", "other.toml", "--lock", "other.lock"];
    place.run(&[&["resolve", "--offline", "-q"][..], &at].concat()).code(0);
    place.run(&[&["export", "requirements", "-o", "other.txt"][..], &at].concat()).code(0);
    place.run(&["dockerfile", "-o", "Dockerfile.other", "--lock", "other.lock"]).code(0);
    assert_eq!(found(&place, &[], 0), [""; 0]);
    assert_eq!(found(&place, &at, 0), [""; 0]);
    edit(&place, "other.txt", "torch==2.8.0", "torch==2.7.0");
    assert_eq!(found(&place, &at, 1), ["error file-stale"]);
    // Nothing else was resolved to it any more.
    place.put("other.toml", GOOD.replacen("[target.a]", "[target.c]", 1));
    assert_eq!(found(&place, &[], 1), ["error file-stale", "error file-stale"]);
    let place = project();
    fs::copy(place.path("gpulock.lock"), place.path("old.lock")).unwrap();
    place.put("gpulock.toml", place.text("gpulock.toml").replacen("WARN", "INFO", 1));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    assert!(!found(&place, &[], 1).is_empty());
}

/// Jobs of CI stand at the root of a repository, and are held against the lock of the project that they are for.
#[test]
fn jobs_at_the_root_are_of_the_project_that_they_name() {
    let place = Place::empty();
    fs::create_dir(place.path(".git")).unwrap();
    fs::create_dir_all(place.path(".github/workflows")).unwrap();
    for folder in ["a", "b"] {
        fs::create_dir(place.path(folder)).unwrap();
        place.put(&format!("{folder}/gpulock.toml"), GOOD.replacen("[target.a]", &format!("[target.{folder}]"), 1));
        let at = ["--manifest", &format!("{folder}/gpulock.toml")];
        place.run(&[&["resolve", "--offline", "-q"][..], &at].concat()).code(0);
        let job = format!(".github/workflows/{folder}.yml");
        place.run(&[&["export", "github", "-o", &job][..], &at].concat()).code(0);
    }
    place.run(&["export", "gitlab", "--manifest", "a/gpulock.toml", "-o", ".gitlab-ci.yml"]).code(0);
    let at = ["--manifest", "a/gpulock.toml"];
    assert!(check(&place, &at).code(0).out.contains("for a; 2 files\n"), "{}", check(&place, &at).out);
    edit(&place, ".github/workflows/a.yml", "name: gpulock", "name: other");
    edit(&place, ".github/workflows/b.yml", "name: gpulock", "name: other");
    let ran = check(&place, &at).code(1);
    assert!(ran.out.contains("--> .github/workflows/a.yml:") && !ran.out.contains("b.yml"), "{}", ran.out);
    assert!(
        ran.out.contains("`gpulock export github --manifest a/gpulock.toml --folder a -o .github/workflows/a.yml`"),
        "{}",
        ran.out
    );
    let mut below = place.command(&["check", "--matrix-age", "99999"]);
    let ran = Ran::of(below.current_dir(place.path("a")).output().unwrap()).code(1);
    assert!(ran.out.contains("--> ../.github/workflows/a.yml:"), "{}", ran.out);
    assert_eq!(found(&place, &[&at[..], &["--exclude", ".github"]].concat(), 0), [""; 0]);
    // From the root, where there is no project, both are left to theirs.
    check(&place, &[]).code(3);
}

/// What is named and is no Dockerfile is not said to be clean.
#[test]
fn what_is_named_is_a_dockerfile() {
    let place = project();
    for (name, what) in
        [("gpulock.toml", "gpulock.toml is not a Dockerfile: it has no FROM"), ("deploy", "deploy is a folder")]
    {
        assert_eq!(found(&place, &[name], 1), ["error file-unchecked"], "{name}");
        let ran = check(&place, &[name]).code(1);
        assert!(ran.out.contains(what) && ran.out.contains("--manifest DIR/gpulock.toml"), "{}", ran.out);
    }
    // Part of a Dockerfile that is found is none, and nothing is said of it.
    place.put("part.Dockerfile", "RUN pip install torch==2.3.0\n");
    assert_eq!(found(&place, &[], 0), [""; 0]);
}
