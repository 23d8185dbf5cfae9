//! What is written is read back, whatever it holds.

use std::collections::{BTreeMap, BTreeSet};

use gpulock::digest::sha256;
use gpulock::lock::{
    Artefact, Code, DriverSupport, FileDigest, Gpu, Image, Lock, Package, Reference, Seal, Target, Tier, Wheel,
    inputs_hash,
};
use gpulock::manifest;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::SAMPLE;

#[test]
fn the_canonical_text_is_a_fixed_point() {
    let lock = Lock::parse(SAMPLE, "gpulock.lock").unwrap();
    assert_eq!(lock.to_text(), SAMPLE);
    let sealed = Lock::parse(&lock.to_file(), "gpulock.lock").unwrap();
    assert_eq!((sealed.seal, sealed.to_text(), sealed.to_file()), (Seal::Whole, lock.to_text(), lock.to_file()));
    assert_eq!(sealed.digest(), lock.digest());
    assert_eq!(Lock::parse(&SAMPLE.replace('\n', "\r\n"), "gpulock.lock").unwrap(), lock);
}

#[test]
fn the_lock_knows_what_it_was_made_for() {
    let ask = |torch: &str| {
        let text = format!("[stack]\ntorch = '{torch}'\n[target.cluster]\ngpus = ['A100']\n");
        manifest::parse(&text, "gpulock.toml").unwrap()
    };
    let lock = Lock { inputs: inputs_hash(&ask("2.8")), ..Lock::parse(SAMPLE, "gpulock.lock").unwrap() };
    assert!(lock.satisfies(&ask("==2.8.*")) && !lock.satisfies(&ask("2.9")));
}

#[test]
fn credentials_do_not_reach_the_text() {
    let mut lock = Lock::parse(SAMPLE, "gpulock.lock").unwrap();
    lock.indexes.insert("pypi".into(), "https://me:secret@pypi.invalid/simple".into());
    for wheel in lock.wheels.values_mut() {
        wheel.url = Some("https://me:secret@files.invalid/x.whl".into());
    }
    assert!(!lock.to_text().contains("secret") && lock.to_text().contains("https://files.invalid/x.whl"));
}

#[test]
fn the_hash_is_sha256() {
    assert_eq!(sha256(b"abc"), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

fn hex() -> impl Strategy<Value = String> {
    any::<u64>().prop_map(|seed| format!("{seed:016x}").repeat(4))
}

/// Text with everything that TOML has to escape.
fn odd() -> impl Strategy<Value = String> {
    vec(select(vec!["a", "RTX 5090", "\"", "\\", "'", "\n", "\u{1b}", "\u{7f}", "é", "#", "=", "]", " "]), 1..5)
        .prop_map(|parts| parts.concat())
}

/// A name of one word, with what TOML has to quote.
fn word() -> impl Strategy<Value = String> {
    vec(select(vec!["a", "5090", "\"", "\\", "'", "é", "#", "=", "]"]), 1..5).prop_map(|parts| parts.concat())
}

fn pick<T: std::str::FromStr + Clone + std::fmt::Debug>(texts: &'static [&'static str]) -> impl Strategy<Value = T>
where
    T::Err: std::fmt::Debug,
{
    select(texts).prop_map(|text| text.parse().unwrap())
}

const NAMES: [&str; 6] = ["torch", "numpy", "nvidia-cudnn-cu12", "typing-extensions", "sympy", "triton"];

fn package(index: String) -> impl Strategy<Value = (Package, Option<Wheel>)> {
    let wheel = (hex(), option::of(any::<u32>()), option::of(Just("https://x.invalid/f.whl".to_owned())), libraries());
    let extras = btree_set(pick(&["test", "opt-einsum"]), 0..2);
    let needed_by = btree_set(select(vec!["torch".to_owned(), Package::MANIFEST.to_owned()]), 0..3);
    (pick(&["2.8.0", "2.8.0+cu126", "1!2rc1.post3"]), extras, needed_by, option::of(wheel)).prop_map(
        move |(version, extras, needed_by, wheel)| {
            let artefact = match &wheel {
                // The caller names the file, when it knows the package.
                Some(_) => Artefact::Wheel(String::new()),
                None => Artefact::Pending { index: index.clone() },
            };
            let wheel = wheel.map(|(sha256, size, url, libraries)| Wheel {
                index: index.clone(),
                sha256,
                size: size.map(u64::from),
                url,
                libraries,
            });
            (Package { version, extras, artefact, needed_by }, wheel)
        },
    )
}

fn libraries() -> impl Strategy<Value = BTreeMap<String, FileDigest>> {
    let path =
        vec(select(vec!["torch", "lib", "libc10.so", "a b", "libé\".so.1"]), 1..4).prop_map(|parts| parts.join("/"));
    let digest = (hex(), any::<u32>()).prop_map(|(sha256, size)| FileDigest { sha256, size: size.into() });
    btree_map(path, digest, 0..3)
}

fn reference() -> impl Strategy<Value = Reference> {
    let name = select(vec!["nvidia/cuda:12.8.1-base-ubuntu22.04", "127.0.0.1:5000/python:3.11-slim-bookworm", "a_b"]);
    let digest = option::of(hex().prop_map(|hex| format!("sha256:{hex}")));
    (name, digest).prop_map(|(name, digest)| Reference { name: name.into(), digest })
}

fn image() -> impl Strategy<Value = Image> {
    let flavor = select(vec!["slim", "base", "runtime", "devel"]);
    let images = (option::of(reference()), option::of(reference()), option::of(reference()));
    (word(), flavor, images, option::of(word())).prop_map(|(os, flavor, (base, uv, small), requires)| Image {
        os,
        flavor: flavor.into(),
        base,
        uv,
        small,
        requires,
    })
}

/// Variables, with values of every kind.
fn env() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map(select(vec!["NCCL_DEBUG".to_owned(), "_".to_owned(), "a1".to_owned()]), odd(), 0..3)
}

fn target() -> impl Strategy<Value = (Target, Vec<(String, Wheel)>)> {
    let codes = [(Code::Sass, Some("sm_90a")), (Code::Ptx, Some("compute_120")), (Code::Unknown, None)];
    let gpu = (odd(), select(vec!["sm_90", "sm_120"]), select(codes.to_vec()))
        .prop_filter("a name", |(name, ..)| !name.trim().is_empty())
        .prop_map(|(name, sm, (code, from))| Gpu { name, sm: sm.into(), code, from: from.map(str::to_owned) });
    let driver = (
        option::of(select(vec!["570.124.06".to_owned(), ">=570,<600".to_owned()])),
        option::of(pick(&["525.60.13", "580"])),
        option::of(pick(&["570.26"])),
        option::of(select(vec![Tier::Native, Tier::MinorVersion, Tier::Forward])),
    )
        .prop_map(|(given, floor, native, tier)| DriverSupport { given, floor, native, tier });
    let head =
        (word(), pick(&["linux-x86_64", "linux-aarch64"]), option::of(pick(&["2.28"])), pick(&["3.11", "3.13t"]));
    let stack = (
        pick(&["2.8.0", "2.15.0"]),
        word(),
        option::of(pick(&["12.8"])),
        option::of(pick(&["9.10.2.21"])),
        option::of(pick(&["2.27.3"])),
    );
    let packages = btree_map(pick(&NAMES), package("pypi".into()), 0..5);
    let torch = package("pypi".into());
    let image = (option::of(image()), env());
    (head, stack, driver, vec(gpu, 1..3), btree_set(odd(), 0..3), image, packages, torch).prop_map(
        |(head, stack, driver, gpus, inferred, (image, env), mut pairs, mut of_torch)| {
            let ((name, platform, glibc, python), (torch, variant, cuda, cudnn, nccl)) = (head, stack);
            let mut wheels = Vec::new();
            let mut packages = BTreeMap::new();
            of_torch.0.version = Clone::clone(&torch);
            pairs.insert("torch".parse().unwrap(), of_torch);
            for (name, (mut package, wheel)) in pairs {
                let name: gpulock::python::PackageName = name;
                let file = format!("{}-{}-py3-none-any.whl", name.as_str().replace('-', "_"), package.version);
                if let Some(wheel) = wheel {
                    package.artefact = Artefact::Wheel(file.clone());
                    wheels.push((file, wheel));
                }
                packages.insert(name, package);
            }
            let target = Target {
                name,
                platform,
                glibc,
                python,
                torch,
                variant,
                cuda,
                cudnn,
                nccl,
                driver,
                gpus,
                inferred,
                image,
                env,
                packages,
            };
            (target, wheels)
        },
    )
}

fn lock() -> impl Strategy<Value = Lock> {
    (hex(), hex(), vec(target(), 1..4)).prop_map(|(inputs, matrix, pairs)| {
        let mut names = BTreeSet::new();
        let mut lock = Lock {
            inputs: format!("sha256:{inputs}"),
            matrix: format!("sha256:{matrix}"),
            indexes: BTreeMap::from([("pypi".to_owned(), "https://pypi.invalid/simple".to_owned())]),
            ..Lock::default()
        };
        for (target, wheels) in pairs {
            if names.insert(target.name.clone()) {
                lock.targets.push(target);
                lock.wheels.extend(wheels);
            }
        }
        lock
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_lock_is_read_back(lock in lock()) {
        let text = lock.to_text();
        let plain = lock.targets.iter().all(|target| target.image.is_none() && target.env.is_empty());
        prop_assert_eq!(text.contains("\nrevision = 0\n"), plain);
        let again = Lock::parse(&text, "gpulock.lock").map_err(|failure| TestCaseError::fail(format!("{failure}\n{text}")))?;
        prop_assert_eq!(again.to_text(), text);
        prop_assert_eq!(again, lock);
    }

    #[test]
    fn no_change_makes_it_panic(at in 0..SAMPLE.len(), junk in odd()) {
        let mut text = SAMPLE.to_owned();
        text.insert_str(at, &junk);
        let _ = Lock::parse(&text, "gpulock.lock");
    }
}
