//! `matrix show`: tables for people and for programs.

use gpulock::matrix::Matrix;
use gpulock::report::matrix::{Ask, Tables, Topic};

fn ask(topic: Topic) -> Ask {
    Ask { topic, torch: None, gpu: None, platform: Default::default() }
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
    let tables = Tables::gather(&matrix, &Ask { gpu: Some(gpu), ..ask(Topic::Stacks) }).unwrap();
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
