//! No false alarm: releases of torch as the default index has them, installed with their torchvision and torchaudio, for
//! A100 and for the oldest and the newest GPU that their code lists name.
//!
//! Three releases unless GPULOCK_TEST_SWEEP says `all` or names some (`2.0.1,2.8.0`).

use super::environment::{Environment, findings};
use crate::known::{self, Build};
use crate::run::{network, timed};

#[test]
fn network_healthy_environments_give_no_finding() {
    if !network() {
        return;
    }
    let platform = format!("linux-{}", std::env::consts::ARCH);
    let all: Vec<Build> =
        known::builds(&platform).into_iter().filter(|build| known::numbers(&build.torch)[0] >= 2).collect();
    let mut alarms = Vec::new();
    println!(
        "{:8} {:5} {:9} {:10} {:>6} {:>8} {:>5} {:>7}",
        "torch", "cuda", "gpu", "driver", "errors", "warnings", "notes", "s"
    );
    for build in chosen(&all) {
        let python = build.pythons.iter().find(|one| *one == "3.11").or(build.pythons.last()).expect("a Python");
        let mut requirements = vec![format!("torch=={}", build.torch)];
        requirements.extend(build.torchvision.iter().map(|version| format!("torchvision=={version}")));
        requirements.extend(build.torchaudio.iter().map(|version| format!("torchaudio=={version}")));
        let Some(environment) = Environment::install(python, &requirements) else { return };
        for gpu in gpus(build) {
            let driver = if gpu.starts_with("sm_3") { "470" } else { "580" };
            let ((report, code), took) = timed(|| environment.verify(&gpu, driver));
            let count = |severity: &str| findings(&report, &[severity]).len();
            println!(
                "{:8} {:5} {gpu:9} {driver:10} {:>6} {:>8} {:>5} {:>7.3}",
                build.torch,
                build.variant,
                count("error"),
                count("warning"),
                count("note"),
                took.as_secs_f64()
            );
            let found = findings(&report, &["error", "warning"]);
            if code != Some(0) || !found.is_empty() {
                alarms.push(format!("torch {} for {gpu}: exit {code:?}\n  {}", build.torch, found.join("\n  ")));
            }
        }
    }
    assert!(alarms.is_empty(), "{}", alarms.join("\n"));
}

fn chosen(all: &[Build]) -> Vec<&Build> {
    match std::env::var("GPULOCK_TEST_SWEEP").as_deref() {
        Ok("all") => all.iter().collect(),
        Ok(named) => all.iter().filter(|build| named.split(',').any(|one| one.trim() == build.torch)).collect(),
        Err(_) => [0, all.len() / 2, all.len() - 1].into_iter().map(|i| &all[i]).collect(),
    }
}

/// A100, and the ends of the build's list of machine code.
fn gpus(build: &Build) -> Vec<String> {
    let mut list: Vec<String> = build.code.iter().filter(|code| code.starts_with("sm_")).cloned().collect();
    list.retain(|code| code.ends_with(|last: char| last.is_ascii_digit()));
    list.sort_by_key(|code| code[3..].parse::<u32>().unwrap());
    let mut gpus = vec!["A100".to_owned()];
    gpus.extend(list.first().cloned());
    gpus.extend(list.last().filter(|last| Some(*last) != list.first()).cloned());
    gpus
}
