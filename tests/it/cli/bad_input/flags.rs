//! Command lines that do not go together, or name what is not there; and all errors as JSON.

use std::process::Command;

use serde_json::json;

use crate::cli::program::{GOOD, Place, Ran};

#[test]
fn flags_without_gpu() {
    let place = Place::empty();
    let words = ["error[usage]", "--driver, --torch without --gpu", "add --gpu", "gpulock init"];
    place.refuses(&["resolve", "--driver", "570", "--torch", "2.8"], 2).says(&words);
    Place::locked().refuses(&["resolve", "--offline", "--cuda", "12"], 2).says(&["--cuda without --gpu"]);
}

#[test]
fn gpu_beside_a_manifest() {
    let words = ["error[usage]", "--gpu asks a one-off question", "gpulock.toml", "--lock FILE"];
    let place = Place::locked();
    place.refuses(&["resolve", "--offline", "--gpu", "H100"], 2).says(&words);
    place.run(&["resolve", "--offline", "--gpu", "H100", "--lock", "other.lock"]).code(0);
    assert!(place.text("other.lock").contains("name = \"H100\""));
}

#[test]
fn values_that_mean_nothing() {
    let place = Place::empty();
    let with = |flag, value| place.refuses(&["resolve", "--offline", "--gpu", "A100", flag, value], 2);
    with("--driver", "abc").says(&["`abc` is not a driver version", "--driver", "nvidia-smi"]);
    with("--torch", ">>2").says(&["`>>2` is not a version specifier", "--torch", ">=2.7,<2.9"]);
    with("--torch", ">=2.9,<2.8").says(&["--torch", "contradicts itself"]);
    with("--python", "three").says(&["--python", "`three`"]);
    with("--cuda", "twelve").says(&["--cuda", "`twelve`"]);
    with("--platform", "windows").says(&["--platform", "linux-x86_64"]);
    with("--package", "numpy<").says(&["--package", "numpy<"]);
    with("--gpu", "").says(&["a value is required for '--gpu <GPU>'"]);
    place.refuses(&["resolve", "--gpus", "A100"], 2).says(&["--gpus", "a similar argument exists: '--gpu'"]);
    place.refuses(&["resolv"], 2).says(&["resolv", "'resolve'"]);
    place.refuses(&["resolve", "--check", "--locked"], 2).says(&["--check", "--locked", "cannot be used with"]);
}

#[test]
fn packages_that_contradict_each_other() {
    let place = Place::empty();
    let both = ["resolve", "--offline", "--gpu", "A100", "--package", "numpy<2", "--package", "numpy>=2"];
    place.refuses(&both, 1).says(&["numpy", "contradicts itself"]);
}

#[test]
fn unknown_target() {
    let place = Place::locked();
    let words = ["error[target-unknown]", "no target `b`", "name one of: a"];
    place.refuses(&["resolve", "--offline", "--target", "b"], 2).says(&words);
    place.refuses(&["export", "requirements", "--target", "b"], 2).says(&words);
    place.refuses(&["why", "torch", "--target", "b"], 2).says(&words);
    let place = Place::with(&GOOD.replace("target.a", "target.cluster"));
    place.refuses(&["resolve", "--offline", "--target", "clutser"], 2).says(&["did you mean `cluster`?"]);
}

#[test]
fn several_targets_and_none_chosen() {
    let place = Place::with(&format!("{GOOD}[target.b]\ngpus = [\"H100\"]\n"));
    place.run(&["resolve", "--offline"]).code(0);
    let words = ["error[target-not-chosen]", "2 targets", "--target a | b"];
    place.refuses(&["export", "requirements"], 2).says(&words);
}

#[test]
fn unknown_package() {
    let place = Place::locked();
    let words = ["error[package-unknown]", "--upgrade-package torhc", "did you mean `torch`?"];
    place.refuses(&["resolve", "--offline", "--upgrade-package", "torhc"], 2).says(&words);
    place.refuses(&["why", "torhc"], 1).says(&["torhc is not in the lock", "did you mean `torch`?"]);
    place.refuses(&["why", "x/y"], 2).says(&["x/y"]);
    place.refuses(&["export", "requirement"], 2).says(&["'requirement'", "requirements, constraints, pylock, uv"]);
}

#[test]
fn output_over_the_lock() {
    let place = Place::locked();
    let words = ["error[usage]", "gpulock.lock is the lock", "name another file"];
    place.refuses(&["resolve", "--offline", "-o", "gpulock.lock"], 2).says(&words);
    place.refuses(&["export", "requirements", "-o", "none/requirements.txt"], 2).says(&["its folder does not exist"]);
}

/// By its own name, another way round, through a link, and by another name on the disk.
#[test]
fn output_over_what_is_read() {
    let place = Place::locked();
    std::fs::create_dir(place.path("sub")).unwrap();
    let over = |arguments: &[&str], file: &str, words: &[&str]| {
        let (soft, hard) = (place.path("sub/soft"), place.path("sub/hard"));
        std::os::unix::fs::symlink(place.path(file), &soft).unwrap();
        std::fs::hard_link(place.path(file), &hard).unwrap();
        let absolute = place.path(file).display().to_string();
        for output in [file, &absolute, &format!("./sub/../{file}"), "sub/soft"] {
            place.refuses(&[arguments, &["-o", output]].concat(), 2).says(words);
        }
        // A folder is known by its own name, and a manifest by that of the file.
        if !file.starts_with("gpulock.") && !file.contains('/') {
            place.refuses(&[arguments, &["-o", "sub/hard"]].concat(), 2).says(words);
        }
        [soft, hard].iter().for_each(|file| std::fs::remove_file(file).unwrap());
    };
    place.put("Dockerfile", "FROM scratch\n");
    place.put("mine.j2", "FROM scratch\n");
    place.put("other.lock", place.lock());
    place.put("other.toml", place.text("gpulock.toml"));
    let is_read = ["error[usage]", "is read by this command", "name another file with -o"];
    let lock = ["error[usage]", "is the lock", "name another file with -o"];
    let manifest = ["error[usage]", "is the manifest", "name another file with -o"];
    for arguments in [
        &["export", "requirements"][..],
        &["dockerfile"],
        &["check"],
        &["diff", "gpulock.lock", "other.lock"],
        &["why", "torch"],
        &["resolve", "--offline", "--format", "json"],
        &["schema", "lock"],
    ] {
        over(arguments, "gpulock.lock", &lock);
        over(arguments, "gpulock.toml", &manifest);
    }
    over(&["dockerfile", "-q", "--template", "mine.j2"], "mine.j2", &is_read);
    over(&["export", "env", "--template", "mine.j2"], "mine.j2", &is_read);
    over(&["export", "requirements", "--lock", "other.lock"], "other.lock", &is_read);
    over(&["diff", "gpulock.lock", "other.lock"], "other.lock", &is_read);
    over(
        &["resolve", "--offline", "--dry-run", "--manifest", "other.toml", "--lock", "new.lock"],
        "other.toml",
        &is_read,
    );
    for file in ["Dockerfile", "mine.j2"] {
        over(&["check", "--matrix-age", "99999"], file, &is_read);
    }
    place.put("library.so", [&b"\x7fELF"[..], &[0; 100]].concat());
    over(&["inspect", "--format", "json", "library.so"], "library.so", &is_read);
    std::fs::create_dir(place.path("image")).unwrap();
    for (file, subject) in [("image/index.json", "oci:image"), ("image.tar", "image:image.tar"), ("a.whl", "a.whl")] {
        place.put(file, "{}");
        // None of them can be read, which is told to programs in the file of `-o`.
        over(&["verify", "--format", "json", subject], file, &["error["]);
    }
}

#[test]
fn output_over_an_older_one() {
    let place = Place::locked();
    for _ in 0..2 {
        place.run(&["export", "requirements", "-o", "requirements.txt"]).code(0);
        place.run(&["check", "--matrix-age", "99999", "--format", "sarif", "-o", "report.sarif"]).code(0);
        place.run(&["export", "uv", "-o", "./pyproject.toml"]).code(0);
    }
    assert!(place.text("pyproject.toml").contains("torch"));
    place.run(&["check", "--matrix-age", "99999", "-o", "/dev/null"]).code(0);
}

#[test]
fn mirrors_and_time_limits() {
    let place = Place::locked();
    let with = |value| place.refuses(&["resolve", "--offline", "--mirror", value], 2);
    with("http://user:hunter2@host/simple").says(&["error[usage]", "a mirror without name", "NAME=URL"]);
    with("pipy=http://user:hunter2@host/simple").says(&["no index `pipy`", "pypi"]);
    with("pypi=ftp://user:hunter2@host/simple").says(&["index `pypi`", "ftp"]);
    let before = place.all();
    let ran = Ran::of(place.command(&["resolve"]).env("GPULOCK_HTTP_TIMEOUT", "soon").output().unwrap()).code(2);
    ran.says(&["GPULOCK_HTTP_TIMEOUT is `soon`", "give seconds"]);
    assert_eq!(place.all(), before);
}

#[test]
fn several_mirrors() {
    let place = Place::locked();
    let with = |value: &str| {
        let mut command = place.command(&["resolve", "--offline", "--dry-run"]);
        Ran::of(command.env("GPULOCK_MIRROR", value).output().unwrap())
    };
    let (one, other) = ("pypi=http://127.0.0.1:1/simple", "torch-cu126=http://127.0.0.1:2/simple");
    for between in [" ", "  ", "\n", " \t\n "] {
        with(&format!("{between}{one}{between}{other}{between}")).code(0);
        // Both are looked at.
        with(&format!("{one}{between}x={one}")).code(2).says(&["there is no index `x`"]);
    }
    with(&format!("{one},{other}")).code(2).says(&["a comma between them", "put a space between two"]);
    with(&format!("{one} {one}")).code(2).says(&["two mirrors for the index `pypi`", "name one"]);
    with("pypi=http://127.0.0.1:1/a,b=c/simple").code(0);
    let twice = ["resolve", "--offline", "--dry-run", "--mirror", one, "--mirror", other];
    place.run(&twice).code(0);
}

#[test]
fn switches_in_the_environment() {
    let place = Place::locked();
    let with = |name: &str, value: &str| {
        let mut command = place.command(&["resolve", "--offline"]);
        Ran::of(command.env(name, value).output().unwrap())
    };
    for variable in ["OFFLINE", "CHECK", "LOCKED", "DRY_RUN", "UPGRADE", "ALLOW_PENDING", "FORWARD_COMPAT"] {
        let variable = format!("GPULOCK_{variable}");
        // A flag on the command line needs no variable.
        if variable != "GPULOCK_OFFLINE" {
            let said = with(&variable, "maybe").code(2).says(&[&format!("{variable} is `maybe`"), "yes or on"]);
            assert_eq!(said.out, "");
        }
    }
    for (value, on) in [
        ("1", true),
        ("TRUE", true),
        ("yes", true),
        ("on", true),
        ("0", false),
        ("False", false),
        ("no", false),
        ("off", false),
        ("", false),
    ] {
        let ran = with("GPULOCK_DRY_RUN", value).code(0);
        assert_eq!(ran.out.contains("nothing written"), on, "{value}: {ran:?}");
    }
    let mut command = place.command(&["resolve", "--check"]);
    let ran = Ran::of(command.env("GPULOCK_OFFLINE", "maybe").env("GPULOCK_FORMAT", "json").output().unwrap()).code(2);
    assert!(ran.json()["errors"][0]["message"].as_str().unwrap().contains("GPULOCK_OFFLINE"), "{ran:?}");
}

#[test]
fn logins_are_never_shown() {
    let place = Place::locked();
    let mirror = "pypi=http://user:hunter2@127.0.0.1:1/simple?token=hunter2";
    let help = |command: &mut Command| Ran::of(command.env("GPULOCK_MIRROR", mirror).output().unwrap());
    let runs = [
        place.run(&["resolve", "--mirror", mirror, "--upgrade"]),
        place.run(&["resolve", "--mirror", mirror, "--offline", "-v"]),
        place.run(&["resolve", "--mirror", "http://user:hunter2@127.0.0.1:1/simple"]),
        place.run(&["resolve", "--format", "json", "--mirror", "x=http://user:hunter2@127.0.0.1:1/simple"]),
        help(&mut place.command(&["resolve", "--help"])),
        help(&mut place.command(&["resolve", "--upgrade", "-vv"])),
    ];
    for ran in runs {
        assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
    }
    assert!(!place.lock().contains("hunter2"));
}

#[test]
fn errors_as_json() {
    let place = Place::with(&GOOD.replace("torch", "touch"));
    let ran = place.run(&["resolve", "--offline", "--format", "json"]).code(2).says(&["error[unknown-key]"]);
    let error = &ran.json()["errors"][0];
    assert_eq!(ran.json()["schema"], "gpulock.error/1");
    assert_eq!(error["code"], "unknown-key");
    assert_eq!(error["evidence"][0]["path"], "gpulock.toml");
    assert_eq!(error["evidence"][0]["line"], 2);
    assert_eq!(error["fix"], "did you mean `torch`?");

    // A command line that is not understood, also when the environment asks for JSON.
    let usage = place.run(&["resolve", "--format", "json", "--driver", "abc", "--gpu", "A100"]).code(2);
    assert_eq!(usage.json()["errors"][0]["code"], "usage");
    assert!(usage.json()["errors"][0]["message"].as_str().unwrap().contains("`abc` is not a driver version"));
    let usage = Ran::of(place.command(&["resolve", "--gpus"]).env("GPULOCK_FORMAT", "json").output().unwrap()).code(2);
    assert_eq!(usage.json()["schema"], "gpulock.error/1");

    let place = Place::locked();
    for (arguments, code, name) in [
        (&["resolve", "--locked", "--lock", "none.lock"][..], 1, "lock-missing"),
        (&["export", "requirements", "--lock", "none.lock"], 2, "lock-missing"),
        (&["why", "torhc"], 1, "package-unknown"),
        (&["init"], 1, "manifest-exists"),
        (&["resolve", "--offline", "--matrix", "none"], 2, "matrix-unreadable"),
    ] {
        let ran = place.run(&[arguments, &["--format", "json"]].concat()).code(code);
        assert_eq!(ran.json()["errors"][0]["code"], name, "{ran:?}");
        assert!(ran.json()["errors"][0]["evidence"][0].is_object(), "{ran:?}");
    }
}

#[test]
fn conflicts_as_json() {
    let place = Place::with(&GOOD.replace("2.8.0", "==9.9"));
    let ran = place.run(&["resolve", "--offline", "--format", "json"]).code(1);
    let conflict = ran.json();
    assert_eq!(conflict["schema"], "gpulock.conflict/1");
    assert_eq!(conflict["target"], "a");
    assert!(conflict["explanation"].as_str().unwrap().contains("No torch ==9.9"));
    assert_eq!(conflict["repairs"][0]["change"], "torch <9.9");
    assert_eq!(conflict.get("others"), None);
    // Two targets without a stack: still one document.
    place.put("gpulock.toml", format!("{}[target.b]\ngpus = [\"H100\"]\n", GOOD.replace("2.8.0", "==9.9")));
    let both = place.run(&["resolve", "--offline", "--format", "json"]).code(1).json();
    assert_eq!((&both["target"], &both["others"][0]["target"]), (&json!("a"), &json!("b")));
    assert_eq!(place.names(), ["gpulock.toml"]);
}

#[test]
fn every_flag_has_its_variable() {
    let place = Place::empty();
    let commands = ["resolve", "init", "export", "why", "matrix show", "matrix check", "matrix update", "matrix audit"];
    for command in commands {
        let arguments: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = place.run(&arguments).code(0).out;
        let mut flag = None;
        for word in help.lines().filter_map(|line| line.split_whitespace().find(|word| !word.ends_with(','))) {
            if word.starts_with("--") && !["--help", "--version"].contains(&word) {
                assert_eq!(flag.replace(word), None, "{command} {word}: the flag before it has no variable\n{help}");
            } else if word == "[env:" {
                flag = None;
            }
        }
        assert_eq!(flag, None, "{command}\n{help}");
    }
}

#[test]
fn variables_of_the_environment_are_flags() {
    let place = Place::empty();
    let mut command = place.command(&["resolve"]);
    let variables = [
        ("OFFLINE", "1"),
        ("GPU", "A100,H100"),
        ("DRIVER", "580"),
        ("TORCH", "2.8"),
        ("FORMAT", "json"),
        ("QUIET", "1"),
    ];
    command.envs(variables.map(|(name, value)| (format!("GPULOCK_{name}"), value)));
    let ran = Ran::of(command.output().unwrap()).code(0);
    assert_eq!(ran.json()["targets"][0]["gpus"][1]["name"], "H100");
    assert_eq!(ran.err, "");
    let mut command = place.command(&["resolve"]);
    command.env("GPULOCK_OFFLINE", "1").env("GPULOCK_DRIVER", "abc").env("GPULOCK_GPU", "A100");
    Ran::of(command.output().unwrap()).code(2).says(&["abc"]);
}
