//! Locks that are damaged, foreign or of a later version.

use crate::cli::program::Place;

const RESOLVE: [&str; 2] = ["resolve", "--offline"];
const UPGRADE: [&str; 3] = ["resolve", "--offline", "--upgrade"];

/// Every command that reads the lock refuses this one and leaves it; returns the place.
fn refused(damage: impl Fn(&str) -> Vec<u8>, words: &[&str]) -> Place {
    let place = Place::locked();
    place.put("gpulock.lock", damage(&place.lock()));
    let commands: [&[&str]; 6] = [
        &RESOLVE,
        &["resolve", "--offline", "--check"],
        &["resolve", "--locked"],
        &["resolve", "--offline", "--dry-run"],
        &["export", "requirements"],
        &["why", "torch"],
    ];
    for command in commands {
        place.refuses(command, 2).says(words).says(&["gpulock.lock", "help:"]);
    }
    place
}

/// `--upgrade` writes it anew, the same as the first time.
fn upgrades(place: &Place) {
    place.run(&UPGRADE).code(0);
    assert_eq!(place.lock(), Place::locked().lock());
    assert_eq!(place.names(), ["gpulock.lock", "gpulock.toml"]);
}

#[test]
fn a_newer_version() {
    let newer = |lock: &str| lock.replace("version = 1\n", "version = 2\n").into_bytes();
    let place = refused(newer, &["error[lock-too-new]", "has version 2", "reads version 1", "use a newer gpulock"]);
    place.refuses(&UPGRADE, 2).says(&["has version 2"]);
}

#[test]
fn a_newer_revision_is_read() {
    let place = Place::locked();
    let newer = place.lock().replace("revision = 2\n", "revision = 7\nnovelty = true\n");
    place.put("gpulock.lock", &newer);
    place.run(&["export", "requirements"]).code(0);
    place.run(&["resolve", "--locked"]).code(0);
    assert_eq!(place.lock(), newer);
}

#[test]
fn conflict_markers() {
    let conflict = |lock: &str| {
        let lines: Vec<&str> = lock.lines().collect();
        let ours = lines[1..9].join("\n");
        let text = format!("{}\n<<<<<<< HEAD\n{ours}\n=======\n{ours}\n>>>>>>> branch\n", lines[0]);
        (text + &lines[9..].join("\n")).into_bytes()
    };
    let place =
        refused(conflict, &["error[merge-conflict]", "unresolved merge conflicts: lines 2 to 20", "either side"]);
    upgrades(&place);
}

#[test]
fn cut_off_anywhere() {
    let length = Place::locked().lock().len();
    for part in [0.01, 0.1, 0.3, 0.5, 0.8, 0.999] {
        let cut = (length as f64 * part) as usize;
        refused(|lock| lock.as_bytes()[..cut].to_vec(), &["error[", "restore it from version control", "--upgrade"]);
    }
    upgrades(&refused(|lock| lock.as_bytes()[..length / 2].to_vec(), &["error["]));
    upgrades(&refused(|_| Vec::new(), &["gpulock.lock is empty"]));
}

#[test]
fn cut_off_between_lines() {
    let lock = Place::locked().lock();
    // Wherever a whole line ends, what is left says less than it promises.
    let ends: Vec<usize> = lock.match_indices('\n').map(|(at, _)| at + 1).filter(|at| *at < lock.len()).collect();
    let place = Place::locked();
    for end in ends.iter().step_by(7) {
        place.put("gpulock.lock", &lock[..*end]);
        place.refuses(&["export", "requirements"], 2);
    }
}

#[test]
fn no_text() {
    let place = refused(
        |lock| [lock.as_bytes(), b"\xff\xfe"].concat(),
        &["is not UTF-8 text", "restore it from version control", "--upgrade"],
    );
    upgrades(&place);
}

#[test]
fn a_file_that_never_was_a_lock() {
    let place = Place::locked();
    let words = ["error[lock-foreign]", "notes.txt does not look like a lock", "--lock FILE"];
    place.put("notes.txt", "buy milk\n");
    place.refuses(&["resolve", "--offline", "--upgrade", "--lock", "notes.txt"], 2).says(&words);
    let manifest = ["resolve", "--offline", "--upgrade", "--lock", "gpulock.toml"];
    place.refuses(&manifest, 2).says(&["gpulock.toml does not look like a lock"]);
    place.refuses(&["resolve", "--offline", "--lock", "notes.txt"], 2).says(&["notes.txt", "help:"]);
}

#[test]
fn a_lock_that_was_edited() {
    let shorter = |lock: &str| lock.replacen("sha256 = \"", "sha256 = \"0", 1).into_bytes();
    refused(shorter, &["error[lock-broken]", "is not a SHA-256"]);
    let missing = |lock: &str| {
        let kept: Vec<&str> = lock.lines().filter(|line| !line.starts_with("\"sympy-")).collect();
        kept.join("\n").into_bytes()
    };
    refused(missing, &["error[lock-dangling]", "sympy", "no line in [wheel]"]);
}

#[test]
fn a_lock_that_contradicts_itself() {
    for (good, bad, word) in [
        ("torch = \"2.8.0\"", "torch = \"2.7.0\"", "the target has torch 2.7.0, but its package torch is 2.8.0"),
        ("python = \"3.11\"", "python = \"3.12\"", "is not for the target: Python 3.12 on linux-x86_64"),
        ("tier = \"native\"", "tier = \"x\"", "`x` is none of native"),
        ("sm = \"sm_80\"", "sm = \"ampere\"", "`ampere` is not the architecture of a GPU"),
        ("code = \"sass\"", "code = \"ptx\"", "the code is ptx, but it comes from sm_80"),
        ("given = \"580\"", "given = \"new\"", "`new` is not a driver version"),
        ("platform = \"linux-x86_64\"", "platform = \"linux-aarch64\"", "is not for the target"),
        ("needed-by = [\"torch\"]", "needed-by = [\"touch\"]", "`touch`, which needs"),
    ] {
        assert!(Place::locked().lock().contains(good), "{good}");
        let words = [word, "--> gpulock.lock:", "restore it from version control", "--upgrade"];
        upgrades(&refused(|lock| lock.replace(good, bad).into_bytes(), &words));
    }
    let twice = |lock: &str| {
        let line = lock.lines().find(|line| line.starts_with("    { name = \"sympy\"")).unwrap();
        lock.replace(line, &format!("{line}\n{line}")).into_bytes()
    };
    refused(twice, &["package `sympy` stands twice"]);
    let no_torch = |lock: &str| {
        let kept: Vec<&str> = lock.lines().filter(|line| !line.starts_with("    { name = \"torch\"")).collect();
        kept.join("\n").into_bytes()
    };
    refused(no_torch, &["the package torch is missing"]);
    let no_gpu = |lock: &str| {
        let kept: Vec<&str> = lock.lines().filter(|line| !line.starts_with("    { name = \"A100\"")).collect();
        kept.join("\n").into_bytes()
    };
    refused(no_gpu, &["the target has no GPU"]);
}

#[test]
fn what_check_sees_is_said() {
    let check = ["resolve", "--offline", "--check"];
    for (good, bad, word) in [
        ("sha256 = \"", "", "another file of the same name (sha256 "),
        ("sm = \"sm_80\"", "sm = \"sm_86\"", "a: GPUs A100 (sm_86) runs sm_80 code -> A100 (sm_80) runs sm_80 code"),
        ("floor = \"525.60.13\"", "floor = \"525.60\"", "a: driver 580: native (runs from 525.60,"),
        (
            "url = \"https://pypi.org/simple",
            "url = \"https://pypi.example/simple",
            "index pypi: https://pypi.example/simple",
        ),
        ("needed-by = [\"torch\"]", "needed-by = []", "who needs a package"),
    ] {
        let place = Place::locked();
        let lock = place.lock();
        let changed = match bad {
            "" => {
                let at = lock.find("[wheel]").unwrap();
                let at = at + lock[at..].find(good).unwrap() + good.len();
                format!("{}{}{}", &lock[..at], "0".repeat(64), &lock[at + 64..])
            }
            _ => lock.replacen(good, bad, 1),
        };
        assert_ne!(changed, lock, "{good}");
        place.put("gpulock.lock", changed);
        place.refuses(&check, 1).says(&["error[lock-stale]", "gpulock.lock would change", word]);
    }
}

#[test]
fn no_lock() {
    let place = Place::with(crate::cli::program::GOOD);
    place.refuses(&["export", "requirements"], 2).says(&["error[lock-missing]", "run `gpulock resolve`"]);
    place.refuses(&["why", "torch"], 2).says(&["error[lock-missing]", "run `gpulock resolve`"]);
    place.refuses(&["resolve", "--locked"], 1).says(&["error[lock-missing]", "run `gpulock resolve`"]);
    place.refuses(&["resolve", "--offline", "--check"], 1).says(&["error[lock-missing]", "run `gpulock resolve`"]);
}
