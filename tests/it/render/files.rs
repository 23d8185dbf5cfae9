//! Files that a template makes: each format for each kind of lock, its header, and what it refuses.

use std::collections::BTreeMap;

use gpulock::diag::{Class, Failure};
use gpulock::lock::{Code, Lock, choose_image};
use gpulock::matrix::Matrix;
use gpulock::render::generated::{self, Origin, STALE};
use gpulock::render::{Beside, FILES, FileFormat, Format, Options, Template, render};

use crate::lock::SAMPLE;

/// The sample's first target, with variables; `edge` of it has a pending artefact and no driver.
pub fn lock() -> Lock {
    let mut lock = Lock::parse(SAMPLE, "gpulock.lock").unwrap();
    lock.targets.truncate(1);
    lock.targets[0].image = Some(choose_image(&lock.targets[0], &BTreeMap::new(), &Matrix::embedded()).unwrap().0);
    lock.targets[0].env.insert("NCCL_DEBUG".into(), "WARN".into());
    lock
}

pub fn options() -> Options {
    Options { image: Some("registry.invalid/team/train:1".into()), ..Options::default() }
}

pub fn with(format: &'static FileFormat, lock: &Lock, options: Options) -> Result<String, Failure> {
    let target = lock.targets[0].name.clone();
    let beside = Beside { options, lock_name: "gpulock.lock", ..Beside::default() };
    render(Format::File(format), lock, Some(&target), &beside)
}

pub fn text(format: &'static FileFormat, lock: &Lock) -> String {
    with(format, lock, options()).unwrap()
}

/// Locks of one and of two targets, for both platforms, with and without GPUs that need PTX, and one that knows little.
fn locks() -> Vec<Lock> {
    let one = lock();
    let mut arm = lock();
    arm.targets[0].platform = "linux-aarch64".parse().unwrap();
    let mut two = lock();
    let mut second = two.targets[0].clone();
    second.name = "other".into();
    second.gpus.push(second.gpus[0].clone());
    second.gpus[1].sm = "sm_90".into();
    second.gpus[1].code = Code::Ptx;
    two.targets.push(second);
    let mut little = lock();
    little.targets[0].driver = gpulock::lock::DriverSupport::default();
    (little.targets[0].cuda, little.targets[0].env) = (None, Default::default());
    vec![one, arm, two, little]
}

#[test]
fn every_format_has_its_header_and_is_what_the_lock_gives() {
    for format in FILES {
        for lock in locks() {
            let text = text(format, &lock);
            let first = text.lines().find(|line| !line.starts_with("#!")).unwrap();
            assert!(
                first.starts_with(&format!("{}Written by `gpulock export {}`;", format.comment, format.name)),
                "{first}"
            );
            assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{text}");
            assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
            // Functions of Python stand two lines apart.
            assert_eq!(text.contains("\n\n\n"), format.name == "guard", "{text}");
            let header = generated::header(&text).unwrap();
            assert_eq!(header.lock, Some(&*lock.digest()));
            let origin =
                Origin { lock: &lock, with_images: &lock, lock_name: "gpulock.lock", templates: &[], place: "" };
            assert_eq!(generated::judge("file", &text, &origin), None);
            // An edit of any line but those of the header is found there.
            let edited = format!("{}x\n", text.trim_end());
            let found = generated::judge("file", &edited, &origin).unwrap();
            assert!(found.code == STALE && found.message.contains("was changed since"), "{found:?}");
            let mut moved = lock.clone();
            moved.targets[0].env.insert("MOVED".into(), "1".into());
            let origin =
                Origin { lock: &moved, with_images: &moved, lock_name: "gpulock.lock", templates: &[], place: "" };
            let found = generated::judge("file", &text, &origin).unwrap();
            assert!(found.message.contains("was written for another lock"), "{found:?}");
            let fix = found.fix.unwrap();
            assert!(fix.contains(&format!("`gpulock export {}", format.name)), "{fix}");
            assert_eq!(fix.contains("--image registry.invalid/team/train:1"), text.contains("Options: "), "{fix}");
        }
    }
}

#[test]
fn options_are_recorded_and_a_changed_one_is_an_edit() {
    for format in FILES.iter().filter(|format| !format.takes.is_empty()) {
        let lock = lock();
        let options = Options {
            image: Some("a.invalid/b:1".into()),
            gpus: std::num::NonZeroU32::new(4),
            command: vec!["python".into(), "it's $HOME.py".into(), "é\n\u{2028}".into()],
            constraint: Some("a100|h100".into()),
            dockerfile: Some("../gpu.Dockerfile".into()),
            folder: Some("jobs/it's $HOME".into()),
        };
        let text = with(format, &lock, options).unwrap();
        let origin = Origin { lock: &lock, with_images: &lock, lock_name: "gpulock.lock", templates: &[], place: "" };
        assert_eq!(generated::judge("file", &text, &origin), None, "{text}");
        let broken = text.replacen("Options: {", "Options: ", 1);
        let found = generated::judge("file", &broken, &origin).unwrap();
        assert_eq!(found.code, STALE, "{found:?}");
    }
}

#[test]
fn templates_of_ones_own_are_known_by_their_hash() {
    for format in FILES {
        let lock = lock();
        let mine =
            format!("{{% extends \"{}\" %}}{{% block last %}}\n{}mine{{% endblock %}}", format.name, format.comment);
        let template = Template { name: "mine.j2", text: &mine };
        let beside =
            Beside { options: options(), template: Some(template), lock_name: "gpulock.lock", ..Beside::default() };
        let text = render(Format::File(format), &lock, None, &beside).unwrap();
        assert!(text.contains(&format!("\n{}mine", format.comment)), "{text}");
        let judge = |templates: &[(String, String)]| {
            let origin = Origin { lock: &lock, with_images: &lock, lock_name: "gpulock.lock", templates, place: "" };
            generated::judge("file", &text, &origin)
        };
        assert_eq!(judge(&[("mine.j2".into(), mine.clone())]), None);
        let unknown = judge(&[]).unwrap();
        assert!(unknown.code == STALE && unknown.fix.as_ref().unwrap().contains("--template FILE"), "{unknown:?}");
        let wrong = Template { name: "mine.j2", text: "\n{{ nonsense }}" };
        let beside = Beside { options: options(), template: Some(wrong), ..Beside::default() };
        let failure = render(Format::File(format), &lock, None, &beside).unwrap_err();
        assert_eq!((failure.class, failure.diagnostics[0].code), (Class::Unanswerable, "template-invalid"));
        assert!(format!("{failure:?}").contains("mine.j2:2"), "{failure:?}");
    }
}

#[test]
fn templates_name_the_filters_that_they_use() {
    for format in FILES {
        let (about, _) = format.template.split_once("#}").unwrap();
        let used: std::collections::BTreeSet<&str> = format
            .template
            .split("{{")
            .skip(1)
            .filter_map(|rest| rest.split("}}").next())
            .flat_map(|expression| expression.split('|').skip(1))
            .filter_map(|filter| filter.split_whitespace().next())
            .filter(|filter| filter.chars().all(|c| c.is_ascii_lowercase()) && !["join", "length"].contains(filter))
            .collect();
        assert!(!used.is_empty());
        for filter in used {
            assert!(about.contains(&format!("\n  {filter} ")), "{}: {filter}", format.name);
        }
    }
}

#[test]
fn an_image_is_needed_by_some_and_must_be_a_name() {
    for format in FILES {
        let without = with(format, &lock(), Options::default());
        if format.needs_image {
            let failure = without.unwrap_err();
            assert_eq!((failure.class, failure.diagnostics[0].code), (Class::Unanswerable, "image-not-named"));
        } else {
            without.unwrap();
        }
        let odd = Options { image: Some("a b\n".into()), ..Options::default() };
        let odd = with(format, &lock(), odd);
        assert_eq!(odd.is_err(), format.takes.contains(&gpulock::render::Opt::Image), "{odd:?}");
    }
}
