//! Which machines a file asks for: GPUs and drivers of the lock, as a scheduler and a container runtime read them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::files::{lock, options, with};
use super::values::{format, yaml};

#[test]
fn nodes_have_a_gpu_of_the_lock_and_a_driver_that_will_do() {
    let lock_with = |floor: &str, sms: &[&str]| {
        let mut lock = lock();
        let target = &mut lock.targets[0];
        target.driver.floor = (!floor.is_empty()).then(|| floor.parse().unwrap());
        let gpu = target.gpus[0].clone();
        target.gpus = sms.iter().map(|sm| gpulock::lock::Gpu { sm: (*sm).into(), ..gpu.clone() }).collect();
        yaml(&with(format("k8s"), &lock, options()).unwrap())
    };
    const TERMS: &str = "/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                         /nodeSelectorTerms";
    // As the scheduler reads them: terms are ORed, expressions ANDed; Gt and Lt compare whole numbers, and nothing else.
    let fits = |job: &Value, capability: &str, driver: &str| {
        let (major, minor) = capability.split_once('.').unwrap();
        let mut numbers = driver.split('.');
        let mut labels =
            BTreeMap::from([("nvidia.com/gpu.compute.major", major), ("nvidia.com/gpu.compute.minor", minor)]);
        for key in ["major", "minor", "revision"] {
            let key: &'static str = match key {
                "major" => "nvidia.com/cuda.driver-version.major",
                "minor" => "nvidia.com/cuda.driver-version.minor",
                _ => "nvidia.com/cuda.driver-version.revision",
            };
            labels.insert(key, numbers.next().unwrap_or(""));
        }
        let holds = |expression: &Value| {
            let label = labels[expression["key"].as_str().unwrap()];
            let value = expression["values"][0].as_str().unwrap();
            // What a label may have (RFC 1123).
            assert!(value.starts_with(|c: char| c.is_ascii_alphanumeric()), "{value}");
            let number = |text: &str| text.parse::<i64>().ok();
            match expression["operator"].as_str().unwrap() {
                "In" => label == value,
                "Gt" => number(label).zip(number(value)).is_some_and(|(label, value)| label > value),
                "Lt" => number(label).zip(number(value)).is_some_and(|(label, value)| label < value),
                other => panic!("{other}"),
            }
        };
        let terms = job.pointer(TERMS).unwrap().as_array().unwrap();
        terms.iter().any(|term| term["matchExpressions"].as_array().unwrap().iter().all(holds))
    };
    let job = lock_with("525.60.13", &["sm_80", "sm_120"]);
    for driver in ["525.60.13", "525.60.14", "525.85.12", "525.85", "535.54.03", "580.00.01"] {
        assert!(fits(&job, "8.0", driver) && fits(&job, "12.0", driver), "{driver}");
        assert!(!fits(&job, "9.0", driver) && !fits(&job, "8.6", driver), "{driver}");
    }
    for driver in ["525.60.12", "525.60.09", "525.60", "525.9.99", "520.99.99", "450.80.02"] {
        assert!(!fits(&job, "8.0", driver), "{driver}");
    }
    let job = lock_with("450.80.02", &["sm_80"]);
    assert!(fits(&job, "8.0", "450.80.02") && fits(&job, "8.0", "450.119.03") && fits(&job, "8.0", "455.06"));
    assert!(!fits(&job, "8.0", "450.80.01") && !fits(&job, "8.0", "450.36.06"));
    for floor in ["580", "580.0", "580.00.00"] {
        let job = lock_with(floor, &["sm_90"]);
        assert!(fits(&job, "9.0", "580.65.06") && fits(&job, "9.0", "580.00.01") && !fits(&job, "9.0", "575.57.08"));
    }
    let job = lock_with("570.26", &["sm_90"]);
    assert!(fits(&job, "9.0", "570.26") && fits(&job, "9.0", "570.124.06") && !fits(&job, "9.0", "570.25.99"));
    let job = lock_with("570.00.10", &["sm_90"]);
    assert!(fits(&job, "9.0", "570.00.10") && fits(&job, "9.0", "570.1") && !fits(&job, "9.0", "570.00.09"));
    assert!(!fits(&job, "9.0", "570.00") && !fits(&job, "9.0", "569.00.11"));
    // Nothing is known of the driver: the GPU decides.
    let job = lock_with("", &["sm_90"]);
    assert!(fits(&job, "9.0", "1.1") && !fits(&job, "8.0", "580.65.06"));
    assert!(!job.to_string().contains("NVIDIA_REQUIRE"));
}

#[test]
fn a_gpu_that_needs_ptx_needs_the_native_driver() {
    let mut lock = lock();
    lock.targets[0].gpus[0].code = gpulock::lock::Code::Ptx;
    let text = with(format("compose"), &lock, options()).unwrap();
    assert!(text.contains("NVIDIA_REQUIRE_DRIVER: \"driver>=570.26\""), "{text}");
    lock.targets[0].driver.tier = Some(gpulock::lock::Tier::Forward);
    let text = with(format("compose"), &lock, options()).unwrap();
    assert!(text.contains("driver>=570.124.06"), "{text}");
}

/// nvidia/cuda has the container runtime ask for the driver that knows its CUDA.
#[test]
fn the_base_image_asks_for_a_driver_too() {
    let mut lock = lock();
    let ask = BTreeMap::from([("flavor".to_owned(), "base".to_owned()), ("os".to_owned(), "ubuntu22.04".to_owned())]);
    let matrix = gpulock::matrix::Matrix::embedded();
    lock.targets[0].image = Some(gpulock::lock::choose_image(&lock.targets[0], &ask, &matrix).unwrap().0);
    let target = |lock: &mut gpulock::lock::Lock, tier, variable: Option<&str>| {
        lock.targets[0].driver.tier = tier;
        lock.targets[0].env = variable
            .into_iter()
            .filter_map(|text| text.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
    };
    use gpulock::lock::Tier;
    for (tier, variable, driver) in [
        (Some(Tier::Native), None, "570.26"),
        (None, None, "570.26"),
        // The lock is for machines with an older one.
        (Some(Tier::MinorVersion), None, "525.60.13"),
        (Some(Tier::Native), Some("NVIDIA_DISABLE_REQUIRE=1"), "525.60.13"),
        // The runtime takes that for a no.
        (Some(Tier::Native), Some("NVIDIA_DISABLE_REQUIRE=false"), "570.26"),
        (Some(Tier::Native), Some("NVIDIA_REQUIRE_CUDA=1"), "525.60.13"),
    ] {
        target(&mut lock, tier, variable);
        for name in ["compose", "k8s", "devcontainer"] {
            let text = with(format(name), &lock, options()).unwrap();
            assert!(text.contains(&format!("\"driver>={driver}\"")), "{tier:?} {variable:?} {text}");
            let raised =
                text.contains("The base image asks for this one") || text.contains("the base image asks for more");
            assert_eq!(raised, driver == "570.26", "{text}");
        }
        let job = with(format("k8s"), &lock, options()).unwrap();
        assert_eq!(job.contains("values: [\"569\"]"), driver == "570.26", "{job}");
        for (image, least) in [("a.invalid/b:1", driver), ("/shared/b.sif", "525.60.13")] {
            let options = gpulock::render::Options { image: Some(image.into()), ..Default::default() };
            let text = with(format("slurm"), &lock, options).unwrap();
            assert!(text.contains(&format!("local least='{least}' ")), "{text}");
        }
        // The stack itself is not the image.
        let text = with(format("guard"), &lock, gpulock::render::Options::default()).unwrap();
        assert!(text.contains("\"driver\": \"525.60.13\""), "{text}");
    }
    target(&mut lock, Some(Tier::MinorVersion), None);
    let text = with(format("k8s"), &lock, options()).unwrap();
    assert!(text.contains("# The base image asks for more (cuda>=12.8), but for GPUs and driver branches"), "{text}");
}

#[test]
fn a_job_that_fails_is_not_tried_again() {
    let job = yaml(&with(format("k8s"), &lock(), options()).unwrap());
    assert_eq!(job["spec"]["backoffLimit"], 0);
    let rule = &job["spec"]["podFailurePolicy"]["rules"][0];
    assert_eq!((&rule["action"], &rule["onPodConditions"][0]["type"]), (&"Ignore".into(), &"DisruptionTarget".into()));
    // The API takes such a policy with no other restart policy.
    assert_eq!(job.pointer("/spec/template/spec/restartPolicy"), Some(&"Never".into()));
    let toleration = &job.pointer("/spec/template/spec/tolerations/0").unwrap();
    assert_eq!(toleration["key"], "nvidia.com/gpu");
}
