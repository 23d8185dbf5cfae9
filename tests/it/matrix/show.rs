//! `matrix show`: tables for people and for programs.

use gpulock::matrix::Matrix;
use gpulock::report::matrix::{Ask, Tables, Topic};

fn ask(topic: Topic) -> Ask {
    Ask { topic, torch: None, gpus: Vec::new(), platform: Default::default() }
}

#[test]
fn what_goes_with_what() {
    let matrix = Matrix::embedded();
    let two_eight = Ask { torch: Some("==2.8.*".parse().unwrap()), ..ask(Topic::Stacks) };
    let text = Tables::gather(&matrix, &two_eight).unwrap().human();
    let row = text.lines().find(|line| line.starts_with("2.8.0")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[..7], ["2.8.0", "cu128*", "12.8", "525.60.13", "570.26", "9.10.2.21", "2.27.3"]);
    assert!(row.ends_with("3.9-3.13 t  70 75 80 86 90 100 120"), "{row}");
    assert!(text.contains("nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv"));
    assert!(!text.contains("2.7.1"));
}

#[test]
fn of_one_gpu_only_what_serves_it() {
    let matrix = Matrix::embedded();
    let gpu = matrix.gpu().unwrap().find("RTX 5090").unwrap();
    let tables = Tables::gather(&matrix, &Ask { gpus: vec![gpu], ..ask(Topic::Stacks) }).unwrap();
    let json: serde_json::Value = serde_json::from_str(&tables.json()).unwrap();
    let builds = json["builds"].as_array().unwrap();
    assert!(builds.iter().all(|build| build["variant"] != "cu126" && build["variant"] != "cu118"));
    let first = builds.iter().find(|build| build["torch"] == "2.8.0").unwrap();
    assert_eq!(first["serves_by"], "sm_120");
    // The family's floor is 525.60.13, but that driver does not know the GPU.
    assert_eq!(first["driver"]["floor"], "570.26");
    assert_eq!(json["schema"], "gpulock.matrix/1");
    assert_eq!(json["gpu"], "sm_120");
}

#[test]
fn of_several_gpus_what_serves_all_of_them() {
    let matrix = Matrix::embedded();
    let gpus: Vec<_> = ["V100", "RTX 5090"].map(|name| matrix.gpu().unwrap().find(name).unwrap()).into();
    let ask = Ask { gpus, torch: Some("==2.7.1".parse().unwrap()), ..ask(Topic::All) };
    let tables = Tables::gather(&matrix, &ask).unwrap();
    let json: serde_json::Value = serde_json::from_str(&tables.json()).unwrap();
    let builds = json["builds"].as_array().unwrap();
    assert!(builds.iter().all(|build| build["serves_by"] == "sm_70, sm_120"), "{builds:#?}");
    // 2.7.1+cu128 has no sm_70, cu118 and cu126 no sm_120: with one GPU each there are builds.
    assert_eq!(builds.len(), 0);
    assert_eq!(json["gpu"], "sm_70, sm_120");
    let rows = |key: &str| json[key].as_array().unwrap().len();
    assert_eq!(rows("gpus"), 2);
    // The last branch for one is R580, the first for the other R570.
    let branches: Vec<u64> =
        json["driver"].as_array().unwrap().iter().map(|row| row["branch"].as_u64().unwrap()).collect();
    assert!(branches.iter().all(|branch| (570..=580).contains(branch)) && branches.len() >= 2, "{branches:?}");
    let every = Ask { torch: None, topic: Topic::Stacks, ..ask };
    assert!(Tables::gather(&matrix, &every).unwrap().human().contains("sm_70, sm_120"));
}

#[test]
fn every_table_has_rows_and_fits_a_terminal() {
    let matrix = Matrix::embedded();
    let all = [Topic::Torch, Topic::Cuda, Topic::Driver, Topic::Gpu, Topic::Cudnn, Topic::Stacks];
    for topic in all {
        let tables = Tables::gather(&matrix, &ask(topic)).unwrap();
        assert!(!tables.is_empty(), "{topic:?}");
        let text = tables.human();
        let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 100).collect();
        assert!(long.is_empty(), "{topic:?}: {long:#?}");
    }
    let every = Tables::gather(&matrix, &ask(Topic::All)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&every.json()).unwrap();
    for key in ["builds", "torch", "cuda", "driver", "gpus", "cudnn", "commands"] {
        assert!(json[key].as_array().is_some_and(|rows| !rows.is_empty()), "{key}");
    }
}
