//! `matrix update` and `matrix audit` against an index on loopback.

use std::path::Path;
use std::time::Duration;

use gpulock::matrix::check::{Depth, check};
use gpulock::matrix::{Files, Matrix};
use gpulock::refresh::{Moment, Update, audit, update};
use gpulock::registry::{Client, Options, Timing};

use crate::registry::server::{Server, ranged, reply};
use crate::registry::wheels::{Made, recipe};

/// A wheel with its upload time and whether it is withdrawn.
struct Upload(Made, &'static str, bool);

fn wheel(name: &str, version: &str, tags: &str, requires: &[&str], files: &[(&str, &[u8])]) -> Made {
    let mut recipe = recipe(name, version);
    let requires: String = requires.iter().map(|text| format!("Requires-Dist: {text}\n")).collect();
    recipe.metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}");
    for (path, bytes) in files {
        recipe = recipe.file(path, *bytes);
    }
    let made = recipe.make();
    Made { file: format!("{}-{version}-{tags}.whl", name.replace('-', "_")), ..made }
}

const TORCH: &[&str] = &[
    "newdep>=1",
    "cuda-toolkit[cudart]==14.1.0; platform_system == \"Linux\"",
    "nvidia-cudnn-cu14==9.99.0.1; platform_system == \"Linux\"",
    "nvidia-nccl-cu14==2.99.1; platform_system == \"Linux\"",
    "triton~=9.0; platform_machine == \"x86_64\"",
];
const FLAGS: &[u8] = b"\x7fELF\0sm_90\0sm_90 sm_100 sm_120 compute_120\0";
const ABI: &[u8] = b"\0_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcE\0";

fn torch(version: &str, tags: &str) -> Made {
    let files: &[(&str, &[u8])] = &[
        ("torch/version.py", b"cuda: Optional[str] = '14.1'\n"),
        ("torch/lib/libtorch_python.so", FLAGS),
        ("torch/lib/libc10.so", ABI),
    ];
    wheel("torch", version, tags, TORCH, files)
}

/// The index: torch 9.9.0 with what it needs, and a torch 9.9.1 that came later.
fn uploads() -> Vec<Upload> {
    let old = "2026-11-01T00:00:00Z";
    let any = "py3-none-any";
    let linux = "py3-none-manylinux_2_27_x86_64";
    vec![
        Upload(torch("9.9.0", "cp312-cp312-manylinux_2_28_x86_64"), old, false),
        Upload(torch("9.9.0", "cp313-cp313t-manylinux_2_28_x86_64"), old, false),
        Upload(torch("9.9.0", "cp312-cp312-win_amd64"), old, false),
        Upload(torch("9.9.1", "cp312-cp312-manylinux_2_28_x86_64"), "2026-12-01T00:00:00Z", false),
        Upload(wheel("torchvision", "9.1.0", linux, &["torch (==9.9.0)"], &[]), old, false),
        Upload(wheel("torchvision", "9.1.1", linux, &["torch>=9.9"], &[]), old, false),
        Upload(wheel("torchvision", "9.0.0", linux, &["torch==9.8.0"], &[]), old, true),
        Upload(wheel("triton", "9.0.0", linux, &[], &[]), old, false),
        Upload(wheel("cuda-toolkit", "14.1.0", any, &[], &[]), old, false),
        Upload(wheel("nvidia-cudnn-cu14", "9.99.0.1", linux, &[], &[]), old, false),
        Upload(wheel("nvidia-nccl-cu14", "2.99.1", linux, &[], &[]), old, false),
        Upload(wheel("newdep", "1.0", any, &["old; python_version < '3.5'", "more; extra == 'x'"], &[]), old, false),
    ]
}

fn serve(uploads: Vec<Upload>) -> Server {
    Server::start(move |seen| {
        if let Some(Upload(made, ..)) = uploads.iter().find(|upload| seen.path.ends_with(&upload.0.file)) {
            return ranged(seen, &made.bytes);
        }
        let package = seen.path.trim_matches('/');
        let of = |upload: &&Upload| upload.0.file.split('-').next().unwrap().replace('_', "-") == package;
        let file = |Upload(made, time, yanked): &Upload| {
            serde_json::json!({
                "filename": made.file, "url": format!("/files/{}", made.file), "hashes": {"sha256": made.sha256},
                "size": made.bytes.len(), "upload-time": time, "yanked": yanked, "requires-python": ">=3.10",
            })
        };
        let files: Vec<_> = uploads.iter().filter(of).map(file).collect();
        if files.is_empty() {
            return reply(404, "", "");
        }
        let page = serde_json::json!({"meta": {"api-version": "1.1"}, "name": package, "files": files});
        reply(200, "application/vnd.pypi.simple.v1+json", page.to_string())
    })
}

fn client(server: &Server, cache: &Path) -> Client {
    let mut options = Options::from_environment([("pypi", server.url.as_str())], &|_| None).unwrap();
    options.cache_dir = cache.into();
    options.timing = Timing {
        connect: Duration::from_secs(5),
        read: Duration::from_secs(5),
        retries: 0,
        backoff: Duration::from_millis(5),
    };
    options.revalidate = true;
    Client::new(options)
}

/// The embedded facts with a snapshot of a few packages, in a directory.
fn directory() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::default();
    for path in files.paths("", ".toml").into_iter().filter(|path| !path.starts_with("snapshot/")) {
        let path_on_disk = folder.path().join(path);
        std::fs::create_dir_all(path_on_disk.parent().unwrap()).unwrap();
        std::fs::write(path_on_disk, files.text(path).unwrap()).unwrap();
    }
    std::fs::create_dir(folder.path().join("snapshot")).unwrap();
    let list = "retrieved = \"2026-10-01\"\nsource = \"x\"\nexclude-newer = \"2026-10-01T00:00:00Z\"\n\
        [packages]\ngpu = [\"torch\", \"torchvision\"]\nother = []\n";
    std::fs::write(folder.path().join("snapshot/INDEX.toml"), list).unwrap();
    folder
}

fn run(matrix: &Matrix, server: &Server) -> Update {
    let cache = tempfile::tempdir().unwrap();
    let moment = Moment { until: "2026-11-15T00:00:00Z".into(), today: "2026-11-16".into() };
    update(matrix, &client(server, cache.path()), "pypi", &moment).unwrap()
}

#[test]
fn an_unseen_torch_is_added_with_all_that_it_needs() {
    let folder = directory();
    let matrix = Matrix::of_directory(folder.path()).unwrap();
    let server = serve(uploads());
    let update = run(&matrix, &server);
    let text = &update.files["torch/9.9.toml"];
    for line in [
        "torch = \"9.9\"",
        "version = \"9.9.0\"",
        "released = \"2026-11-01\"",
        "requires-python = \">=3.10\"",
        "torchvision = [\"9.1.1\", \"9.1.0\"]",
        "torchaudio = []",
        "variant = \"cu141\"",
        "index = \"pypi\"",
        "platform = \"linux-x86_64\"",
        "cuda = \"14.1\"",
        "toolkit = \"14.1.0\"",
        "python = [\"cp312\", \"cp313t\"]",
        "glibc = \"2.28\"",
        "cudnn = \"9.99.0.1\"",
        "nccl = \"2.99.1\"",
        "triton = \"~=9.0\"",
        "code = [\"sm_90\", \"sm_100\", \"sm_120\", \"compute_120\"]",
        "cxx11-abi = true",
        "basis = \"read\"",
        "retrieved = \"2026-11-16\"",
    ] {
        assert!(text.lines().any(|known| known == line), "no `{line}` in\n{text}");
    }
    assert!(!text.contains("9.9.1") && !text.contains("linux-aarch64"), "{text}");
    assert!(update.files["cudnn/9.99.toml"].contains("version = \"9.99.0.1\""));
    assert!(update.files["cuda/14.1.toml"].contains("version = \"14.1.0\""));
    let list = &update.files["snapshot/INDEX.toml"];
    for package in ["cuda-toolkit", "newdep", "nvidia-cudnn-cu14", "nvidia-nccl-cu14", "torch", "triton"] {
        assert!(list.contains(&format!("  \"{package}\",\n")), "{list}");
    }
    assert!(list.contains("exclude-newer = \"2026-11-15T00:00:00Z\"") && !list.contains("\"old\""), "{list}");
    let newdep = &update.files["snapshot/newdep.jsonl"];
    assert!(newdep.starts_with("{\"version\":\"1.0\",\"requires\":[[\"old; python_version < '3.5'\"]],\"wheels\":[{"));

    // A second time, nothing is new, and no wheel is read again.
    let updated = matrix.with_files(&update.files);
    let before = server.count(".whl");
    let again = run(&updated, &server);
    assert!(again.files.is_empty() && again.changes.is_empty(), "{:?}", again.changes);
    assert_eq!(server.count(".whl"), before);

    // What the index cannot tell is missing, and said so: the drivers of CUDA 14.
    let problems = check(updated.files(), Depth::Facts);
    assert!(problems.iter().any(|problem| problem.message.contains("driver floor of CUDA 14.x")), "{problems:?}");
    assert!(problems.iter().all(|problem| problem.code == "matrix-reference"), "{problems:?}");
}

#[test]
fn an_audit_names_each_difference() {
    let folder = directory();
    let matrix = Matrix::of_directory(folder.path()).unwrap();
    let update = run(&matrix, &serve(uploads()));
    let mut files = update.files;
    // Only what this index has.
    let torch = files["torch/9.9.toml"].clone();
    for path in Files::default().paths("torch/", ".toml") {
        let minor = path.trim_start_matches("torch/").trim_end_matches(".toml");
        let top = format!("torch = \"{minor}\"\nrelease = []\nsource = \"x\"\nretrieved = \"2026-11-29\"\n");
        files.insert(path.into(), top);
    }
    for path in Files::default().paths("cudnn/", ".toml") {
        files.insert(path.into(), "cudnn = \"1.0\"\nrelease = []\nsource = \"x\"\nretrieved = \"2026-11-29\"\n".into());
    }
    let look = |files: &std::collections::BTreeMap<String, String>, server: &Server| {
        let cache = tempfile::tempdir().unwrap();
        let found = audit(&matrix.with_files(files), &client(server, cache.path()), "pypi").unwrap();
        found.differences.into_iter().map(|d| format!("{} | {} | {}", d.what, d.matrix, d.index)).collect::<Vec<_>>()
    };
    assert_eq!(look(&files, &serve(uploads())), Vec::<String>::new());

    // The matrix is wrong.
    let wrong = torch.replace("2.99.1", "2.99.2").replace("\"cp313t\"", "\"cp314\"").replace("[\"9.1.1\", ", "[");
    let mut changed = files.clone();
    changed.insert("torch/9.9.toml".into(), wrong);
    let about = "torch 9.9.0, cu141 for linux-x86_64 of pypi";
    assert_eq!(
        look(&changed, &serve(uploads())),
        [
            format!("{about}: python | cp312 cp314 | cp312 cp313t"),
            format!("{about}: nccl | 2.99.2 | 2.99.1"),
            "torch 9.9.0: torchvision | 9.1.0 | 9.1.1 9.1.0".into(),
        ]
    );

    // The index moved on.
    let mut moved = uploads();
    moved.retain(|upload| !upload.0.file.starts_with("nvidia_nccl"));
    for upload in &mut moved {
        upload.2 ^= upload.0.file.starts_with("triton");
    }
    assert_eq!(
        look(&files, &serve(moved)),
        [
            "nvidia_nccl_cu14-2.99.1-py3-none-manylinux_2_27_x86_64.whl | there | -".to_owned(),
            "triton-9.0.0-py3-none-manylinux_2_27_x86_64.whl: yanked | false | true".into(),
        ]
    );
}

#[test]
fn an_empty_index_does_not_empty_the_snapshot() {
    let folder = directory();
    let matrix = Matrix::of_directory(folder.path()).unwrap();
    let cache = tempfile::tempdir().unwrap();
    let moment = Moment { until: "2026-11-15T00:00:00Z".into(), today: "2026-11-16".into() };
    let failure = update(&matrix, &client(&serve(Vec::new()), cache.path()), "pypi", &moment).unwrap_err();
    assert_eq!(failure.diagnostics[0].code, "package-gone");
}
