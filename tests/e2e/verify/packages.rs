//! No false alarm: packages with CUDA code other than torch, as pip installs them, for an older and the newest GPU that
//! their releases support.
//!
//! The small ones unless GPULOCK_TEST_PACKAGES says `all` or names some (`faiss-gpu-cu12,xformers`).

use super::environment::{Environment, findings};
use crate::run::{network, timed};

/// Requirements that are installed together; the first names the row.
struct Package {
    requirements: &'static [&'static str],
    gpus: &'static [&'static str],
    /// Few megabytes, so that it is installed each time.
    small: bool,
    /// What a run of it loads, which shows nothing either.
    probe: Option<&'static str>,
}

impl Package {
    const fn probed(self, probe: &'static str) -> Self {
        Self { probe: Some(probe), ..self }
    }
}

const fn small(requirements: &'static [&'static str], gpus: &'static [&'static str]) -> Package {
    Package { requirements, gpus, small: true, probe: None }
}

const fn large(requirements: &'static [&'static str], gpus: &'static [&'static str]) -> Package {
    Package { requirements, gpus, small: false, probe: None }
}

const PACKAGES: [Package; 19] = [
    small(&["ctranslate2"], &["A100", "RTX 5090"]),
    small(&["faiss-gpu-cu12"], &["V100", "A100"]),
    small(&["numba-cuda[cu12]"], &["V100", "RTX 5090"]),
    small(&["spconv-cu120"], &["A100", "RTX 5090"]),
    small(&["triton"], &["A100", "RTX 5090"]),
    small(&["warp-lang"], &["T4", "RTX 5090"]),
    large(&["bitsandbytes"], &["A100", "RTX 5090"]),
    large(&["cuml-cu12"], &["A100", "RTX 5090"]),
    large(&["cupy-cuda12x[ctk]"], &["V100", "RTX 5090"]),
    large(&["flashinfer-python"], &["A100", "RTX 5090"]),
    large(&["jax[cuda12]"], &["T4", "RTX 5090"]).probed("jax"),
    large(&["jax[cuda13]"], &["T4", "RTX 5090"]).probed("jax"),
    large(&["nvidia-cudnn-frontend", "nvidia-cudnn-cu12"], &["T4", "RTX 5090"]),
    large(&["nvidia-dali-cuda120"], &["T4", "RTX 5090"]),
    large(&["onnxruntime-gpu[cuda,cudnn]"], &["A100", "RTX 5090"]).probed("onnxruntime"),
    large(&["tensorflow[and-cuda]"], &["T4", "RTX 5090"]),
    large(&["torchao", "torch"], &["A100", "RTX 5090"]).probed("torch"),
    large(&["torchcodec", "torch"], &["A100", "RTX 5090"]).probed("torch"),
    large(&["xgboost"], &["T4", "RTX 5090"]),
];

#[test]
fn network_other_packages_give_no_finding() {
    if !network() {
        return;
    }
    let mut alarms = Vec::new();
    for package in chosen() {
        let requirements: Vec<String> = package.requirements.iter().map(|&one| one.to_owned()).collect();
        let Some(environment) = Environment::install("3.11", &requirements) else { return };
        for gpu in package.gpus {
            let mut arguments = vec!["--gpu", gpu, "--driver", "580.65.06"];
            arguments.extend(package.probe.iter().flat_map(|probe| ["--probe", probe]));
            let ((report, code), took) = timed(|| environment.ask(&arguments));
            let found = findings(&report, &["error", "warning"]);
            let name = package.requirements[0];
            println!("{name:28} {gpu:9} {:>3} findings {:>7.3} s", found.len(), took.as_secs_f64());
            if code != Some(0) || !found.is_empty() {
                alarms.push(format!("{name} for {gpu}: exit {code:?}\n  {}", found.join("\n  ")));
            }
        }
    }
    assert!(alarms.is_empty(), "{}", alarms.join("\n"));
}

fn chosen() -> Vec<&'static Package> {
    let asked = std::env::var("GPULOCK_TEST_PACKAGES");
    let is_chosen = |package: &&Package| match asked.as_deref() {
        Ok("all") => true,
        Ok(names) => names.split(',').any(|name| name.trim() == package.requirements[0]),
        Err(_) => package.small,
    };
    PACKAGES.iter().filter(is_chosen).collect()
}
