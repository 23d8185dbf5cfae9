//! Against the real index; only with GPULOCK_TEST_NETWORK=1.

use gpulock::matrix::Matrix;
use gpulock::matrix::schema::{SnapshotFile, TorchReleaseRow};
use gpulock::refresh::{Moment, audit, update};
use gpulock::registry::{Client, Options};

/// A client for all indexes of the matrix, with an empty cache; `None` without the network.
fn client(matrix: &Matrix, cache: &std::path::Path) -> Option<Client> {
    if std::env::var("GPULOCK_TEST_NETWORK").as_deref() != Ok("1") {
        println!("skipped: GPULOCK_TEST_NETWORK=1 is not set");
        return None;
    }
    let env = |name: &str| std::env::var(name).ok();
    let rows = &matrix.index().unwrap().indexes;
    let indexes = rows.iter().map(|row| (row.name.as_str(), row.url.as_str()));
    let mut options = Options::from_environment(indexes, &env).unwrap();
    options.cache_dir = cache.into();
    options.revalidate = true;
    Some(Client::new(options))
}

/// What the index can tell about a release.
fn facts(row: &TorchReleaseRow) -> String {
    let build = |b: &gpulock::matrix::schema::TorchBuildRow| {
        format!(
            "{} {} {} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            b.variant,
            b.index,
            b.platform,
            b.cuda,
            b.toolkit,
            b.python,
            b.glibc,
            b.cudnn,
            b.nccl,
            b.triton,
            b.code,
            b.cxx11_abi
        )
    };
    let builds: Vec<String> = row.builds.iter().map(build).collect();
    format!("{:?} {:?} {:?}\n{}", row.released, row.requires_python, row.torchvision, builds.join("\n"))
}

#[test]
fn network_update_brings_a_torch_release_back() {
    let whole = Matrix::embedded();
    let folder = tempfile::tempdir().unwrap();
    for path in whole.files().paths("", "") {
        if path == "torch/2.15.toml" {
            continue;
        }
        let to = folder.path().join(path);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        let text = whole.files().text(path).unwrap();
        let mentions = |line: &&str| !(path == "snapshot/torch.jsonl" && line.starts_with("{\"version\":\"2.15.0\""));
        let newest = |line: &&str| !(path == "snapshot/triton.jsonl" && line.starts_with("{\"version\":\"3.9.0\""));
        let kept: String = text.split_inclusive('\n').filter(mentions).filter(newest).collect();
        std::fs::write(to, kept).unwrap();
    }
    let matrix = Matrix::of_directory(folder.path()).unwrap();
    assert!(matrix.torch().unwrap().releases().iter().all(|row| row.version.to_string() != "2.15.0"));
    let cache = tempfile::tempdir().unwrap();
    let Some(client) = client(&matrix, cache.path()) else { return };
    let list: SnapshotFile = matrix.files().read("snapshot/INDEX.toml").unwrap();
    let moment = Moment { until: list.exclude_newer, today: list.retrieved };
    let start = std::time::Instant::now();
    let update = update(&matrix, &client, "pypi", &moment).unwrap();
    println!("{:?} in {:?}: {:#?}", client.traffic(), start.elapsed(), update.changes);
    for path in ["snapshot/torch.jsonl", "snapshot/triton.jsonl"] {
        assert!(update.files[path] == whole.files().text(path).unwrap(), "{path}");
    }
    assert!(!update.files.contains_key("snapshot/INDEX.toml"));
    let updated = matrix.with_files(&update.files);
    let of = |matrix: &Matrix| {
        let releases = matrix.torch().unwrap().releases();
        facts(releases.iter().find(|row| row.version.to_string() == "2.15.0").unwrap())
    };
    assert_eq!(of(&updated), of(&whole));
}

#[test]
fn network_audit_finds_no_difference() {
    let matrix = Matrix::embedded();
    let cache = tempfile::tempdir().unwrap();
    let Some(client) = client(&matrix, cache.path()) else { return };
    let start = std::time::Instant::now();
    let audit = audit(&matrix, &client, "pypi").unwrap();
    println!("{:?} in {:?}: {:?} {:#?}", client.traffic(), start.elapsed(), audit.compared, audit.unchecked);
    assert!(audit.differences.is_empty(), "{:#?}", audit.differences);
}
