//! Logins and tokens, wherever they are written: never printed, never in the lock or the cache.

use std::path::Path;
use std::process::Command;

use crate::cli::program::{GOOD, Place, Ran};
use crate::registry::server::{Server, html, ranged, reply};
use crate::registry::wheels::recipe;

/// What no output may hold.
const SECRET: &str = "hunter2";

fn clean(ran: Ran) -> Ran {
    assert!(!format!("{ran:?}").contains(SECRET), "{ran:?}");
    ran
}

#[test]
fn addresses_of_indexes() {
    let index = |url: &str| format!("{GOOD}[[index]]\nname = \"x\"\npackages = [\"torch\"]\nurl = \"{url}\"\n");
    for (url, word) in [
        ("user:hunter2@host/simple", "is not the address of an index"),
        ("ftp://user:hunter2@host/simple", "is not the address of an index"),
        ("https://host/simple?token=hunter2", "GPULOCK_INDEX_<NAME>_USERNAME"),
        ("https://host/simple#hunter2", "it has no `?` and no `#`"),
    ] {
        let place = Place::with(&index(url));
        clean(place.refuses(&["resolve", "--offline"], 2)).says(&[word]);
        clean(place.run(&["resolve", "--offline", "--format", "json"]).code(2));
    }
    // A login may stand in the manifest; it goes no further.
    let place = Place::with(&index("https://user:hunter2@127.0.0.1:1/simple"));
    clean(place.run(&["resolve", "--offline"]));
    clean(place.run(&["resolve"]).code(2));
}

#[test]
fn mirrors() {
    let place = Place::locked();
    for mirror in [
        "http://user:hunter2@host/simple?a=hunter2",
        "user:hunter2@host/simple",
        "nobody=http://user:hunter2@host/simple?a=hunter2",
        "pypi=user:hunter2@host/simple",
        "pypi=http://127.0.0.1:1/simple?token=hunter2",
        "pypi=http://user:hunter2@127.0.0.1:1/simple",
    ] {
        clean(place.run(&["resolve", "--upgrade", "--mirror", mirror]).code(2));
        clean(place.run(&["resolve", "--upgrade", "--format", "json", "--mirror", mirror]).code(2));
        let mut command = place.command(&["resolve", "--upgrade", "-vv"]);
        clean(Ran::of(command.env("GPULOCK_MIRROR", mirror).output().unwrap()).code(2));
    }
}

#[test]
fn requirements_with_addresses() {
    let requirement = "x @ https://user:hunter2@host/x.whl?sig=hunter2";
    let place = Place::empty();
    for arguments in [
        &["resolve", "--offline", "--gpu", "A100", "--package", requirement][..],
        &["resolve", "--offline", "--gpu", "A100", "--package", requirement, "--format", "json"],
        &["resolve", "--offline", "--gpu", "A100", "--torch", "https://user:hunter2@host"],
        &["why", "user:hunter2@host"],
    ] {
        clean(place.run(arguments).code(2)).says(&["***"]);
    }
    let mut command: Command = place.command(&["resolve", "--offline", "--gpu", "A100"]);
    clean(Ran::of(command.env("GPULOCK_PACKAGE", requirement).output().unwrap()).code(2));
    place.put("gpulock.toml", format!("{GOOD}[packages]\nx = \"@ https://user:hunter2@host/x.whl\"\n"));
    clean(place.refuses(&["resolve", "--offline"], 2)).says(&["https://************@host/x.whl"]);
    let place = Place::empty();
    place.put("requirements.txt", format!("--index-url https://host/simple?token=hunter2\ntorch\n{requirement}\n"));
    clean(place.run(&["init"]).code(0));
    assert!(!place.text("gpulock.toml").contains(SECRET));
}

#[test]
fn what_an_index_says() {
    let mut torch = recipe("torch", "2.8.0");
    torch.metadata = "Metadata-Version: 2.1\nName: torch\nVersion: 2.8.0\n\
                      Requires-Dist: x @ https://user:hunter2@host/x.whl?sig=hunter2\n\n"
        .into();
    let made = torch.make();
    let page = format!("<a href=\"http://a:hunter2@127.0.0.1:1/{0}#sha256={1}\">{0}</a>", made.file, made.sha256);
    let far = page.clone();
    let server = Server::start(move |seen| match seen.path.as_str() {
        path if path.starts_with("/far/torch/") => html(far.clone()),
        path if path.starts_with("/torch/") => html(page.replace("http://a:hunter2@127.0.0.1:1", "")),
        path if path.ends_with(".whl") => ranged(seen, &made.bytes),
        _ => reply(404, "text/plain", "no"),
    });
    for below in ["", "/far"] {
        let place = Place::with(GOOD);
        let mirror = format!("pypi={}{below}?token=hunter2", server.url.replace("//", "//me:hunter2@"));
        clean(place.run(&["resolve", "--mirror", &mirror, "-v"]));
        let names = names(&place.path("").join("../cache"));
        assert!(!names.is_empty() && names.iter().all(|name| !name.contains(SECRET)), "{names:?}");
    }
}

/// Paths of all files below a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { names(&path) } else { vec![path.display().to_string()] }).collect()
}
