//! File names that no wheel may have, and wheels that were withdrawn.

use gpulock::diag::Severity;
use gpulock::matrix::Matrix;

use super::server::{Server, html, ranged, reply};
use super::wheels::recipe;
use super::{client, package};
use crate::cli::program::{GOOD, Place, Ran};

#[test]
fn names_that_are_no_wheels_are_passed_over_and_told_once() {
    let names = [
        "x-1%2F..-py3-none-any",
        "x-1-py3-none-an%1By",
        "x-1-py3-none-a%20y",
        "x-1-py3-none-%C3%A9",
        "..x-1-py3-none-any",
    ];
    let bad: String = names.iter().map(|name| format!("<a href=\"{name}.whl\">x</a>")).collect();
    let good = ["x-1!2+local.1-1_b-py2.py3-none-any.whl", "x-3-py3-none-any.whl"];
    let good: String = good.iter().map(|name| format!("<a href=\"{name}\">x</a>")).collect();
    let server = Server::start(move |_| html(format!("{bad}{good}")));
    let folder = tempfile::tempdir().unwrap();
    let client = client(&server.url, folder.path());
    for _ in 0..2 {
        let files: Vec<String> =
            client.list("test", &package("x")).unwrap().iter().map(|wheel| wheel.name.file.to_string()).collect();
        assert_eq!(files, ["x-3-py3-none-any.whl", "x-1!2+local.1-1_b-py2.py3-none-any.whl"]);
    }
    let notes = client.warnings();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!((notes[0].code, notes[0].severity), ("wheel-name", Severity::Note));
    assert!(notes[0].message.contains("index `test` lists 5 files whose names no wheel may have"), "{notes:?}");
    assert!(format!("{:?}", notes[0].evidence).contains("/x/"), "{notes:?}");
}

#[test]
fn a_version_that_was_withdrawn_says_why() {
    let made = |name: &str, version: &str| {
        let mut made = recipe(name, version);
        made.metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n");
        made.make()
    };
    let (torch, x, y) = (made("torch", "2.8.0"), made("x", "1.5"), made("y", "1.5"));
    let server = Server::start(move |seen| {
        let anchor = |made: &super::wheels::Made, more: &str| {
            html(format!("<a href=\"/{0}#sha256={1}\" {more}>{0}</a>", made.file, made.sha256))
        };
        let hash = &y.sha256;
        match seen.path.as_str() {
            "/torch/" => anchor(&torch, ""),
            "/x/" => anchor(&x, "data-yanked=\"breaks on\n\u{202e}CUDA 12\""),
            "/y/" => reply(
                200,
                "application/vnd.pypi.simple.v1+json",
                format!(
                    "{{\"meta\":{{\"api-version\":\"1.1\"}},\"files\":[{{\"filename\":\"{0}\",\"url\":\"/{0}\",\
                     \"hashes\":{{\"sha256\":\"{hash}\"}},\"yanked\":\"wrong licence\"}}]}}",
                    y.file
                ),
            ),
            path => match [&torch, &x, &y].into_iter().find(|made| path.ends_with(&made.file)) {
                Some(made) => ranged(seen, &made.bytes),
                None => reply(404, "text/plain", "no"),
            },
        }
    });
    let place = Place::with(GOOD);
    let resolve = |package: &str| {
        place.put("gpulock.toml", format!("{GOOD}[packages]\n{package}\n"));
        let rows = &Matrix::embedded();
        let mirror = |name: &str| match name {
            "pypi" => format!("pypi={}", server.url),
            name => format!("{name}={}/{name}", server.url),
        };
        let mirrors: Vec<String> = rows.index().unwrap().indexes.iter().map(|row| mirror(&row.name)).collect();
        let mut command = place.command(&["resolve", "--dry-run"]);
        Ran::of(command.env("GPULOCK_MIRROR", mirrors.join(" ")).output().unwrap())
    };
    let words = ["x 1.5 was withdrawn by its authors (yanked: breaks on \u{fffd}CUDA 12)", "only `==1.5` takes it"];
    resolve("x = '>=1'").code(1).says(&words);
    resolve("y = '>=1'").code(1).says(&["y 1.5 was withdrawn by its authors (yanked: wrong licence)"]);
    // What is asked for by its exact version is taken, with a warning.
    resolve("x = '==1.5'").code(0).says(&["warning[yanked]", "withdrawn by its authors (yanked: breaks on"]);
    // What is not there at all still is not there.
    resolve("x = '>=2'").code(1).says(&["there is no x >=2 (known here: 1.5"]);
}
