//! A lock against a manifest that it was not made for: where the two differ, as far as the lock holds it.

use super::model::{Lock, Target};
use crate::manifest::{self, Manifest};
use crate::version::pep440::meets;

impl Lock {
    /// What the manifest asks otherwise than the lock holds: a path as [`Manifest::place`] takes it, and a sentence.
    /// Bounds that the locked versions still meet leave no trace in a lock.
    pub fn differences(&self, manifest: &Manifest) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for asked in &manifest.targets {
            match self.target(&asked.name) {
                Some(locked) => {
                    machines(asked, locked, &mut all);
                    stack(manifest, locked, &mut all);
                    beside(manifest, locked, &mut all);
                }
                None => all.push((format!("target.{}", asked.name), format!("target {} is new", asked.name))),
            }
        }
        for gone in self.targets.iter().filter(|one| manifest.targets.iter().all(|asked| asked.name != one.name)) {
            all.push((String::new(), format!("target {} is gone", gone.name)));
        }
        // What holds for all targets is said once.
        let mut said: Vec<(String, String)> = Vec::new();
        all.into_iter().for_each(|one| {
            if !said.contains(&one) {
                said.push(one)
            }
        });
        said
    }
}

fn machines(asked: &manifest::Target, locked: &Target, all: &mut Vec<(String, String)>) {
    let name = &asked.name;
    let mut say = |key: &str, was: String, is: String| {
        all.push((
            format!("target.{name}.{key}"),
            format!("{key} of target {name}: the lock was made for {was}, not {is}"),
        ));
    };
    let shown = |value: Option<String>| value.unwrap_or_else(|| "none".into());
    let gpus: Vec<&str> = locked.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    if gpus != asked.gpus.iter().map(String::as_str).collect::<Vec<_>>() {
        say("gpus", gpus.join(", "), asked.gpus.join(", "));
    }
    let given = locked.driver.given.as_deref();
    if given.map(|given| given.parse().ok()) != asked.driver.clone().map(Some) {
        say("driver", shown(given.map(str::to_owned)), shown(asked.driver.as_ref().map(ToString::to_string)));
    }
    if locked.platform != asked.platform {
        say("platform", locked.platform.to_string(), asked.platform.to_string());
    }
}

fn stack(manifest: &Manifest, locked: &Target, all: &mut Vec<(String, String)>) {
    let stack = &manifest.stack;
    let mut say = |key: &str, asked: String, has: String| {
        all.push((format!("stack.{key}"), format!("{key} {asked} is asked for, and target {} has {has}", locked.name)));
    };
    if let Some(asked) = stack.python.as_ref().filter(|asked| !asked.allows(locked.python)) {
        say("python", asked.to_string(), locked.python.to_string());
    }
    if let Some((asked, cuda)) = stack.cuda.as_ref().zip(locked.cuda).filter(|(asked, cuda)| !asked.allows(cuda)) {
        say("cuda", asked.to_string(), cuda.to_string());
    }
    if let Some(asked) = stack.variant.as_ref().filter(|asked| **asked != locked.variant) {
        say("variant", asked.clone(), locked.variant.clone());
    }
    let version =
        |name: &str| locked.packages.iter().find(|(one, _)| one.as_str() == name).map(|(_, one)| &one.version);
    let of_stack = [("torch", &stack.torch), ("torchvision", &stack.torchvision), ("torchaudio", &stack.torchaudio)];
    for (name, asked) in of_stack {
        let Some(asked) = asked else { continue };
        match version(name) {
            Some(version) if meets(asked, version) => {}
            Some(version) => say(name, asked.to_string(), version.to_string()),
            None => say(name, asked.to_string(), "none".into()),
        }
    }
    for ask in &manifest.packages {
        let has = match version(ask.package.as_str()) {
            Some(version) if meets(&ask.specifiers, version) => continue,
            Some(version) => version.to_string(),
            None => "none".into(),
        };
        let any = ask.specifiers.to_string();
        let asked = if any.is_empty() { "*" } else { &any };
        let fact = format!("{} {asked} is asked for, and target {} has {has}", ask.package, locked.name);
        all.push((format!("packages.{}", ask.package), fact));
    }
}

/// The variables and the image.
fn beside(manifest: &Manifest, locked: &Target, all: &mut Vec<(String, String)>) {
    for (name, value) in &manifest.env {
        if locked.env.get(name) != Some(value) {
            all.push((format!("env.{name}"), format!("{name} of [env] is not the lock's")));
        }
    }
    for name in locked.env.keys().filter(|name| !manifest.env.contains_key(*name)) {
        all.push((String::new(), format!("{name} is not in [env] any more")));
    }
    let image = locked.image.as_ref();
    if image.is_some() == manifest.image.is_empty() {
        let word = if manifest.image.is_empty() { "there is no [image] any more" } else { "[image] is new" };
        all.push((String::new(), word.into()));
    }
    for (key, locked) in image.iter().flat_map(|image| [("os", &image.os), ("flavor", &image.flavor)]) {
        if let Some(asked) = manifest.image.get(key).filter(|asked| *asked != locked) {
            all.push((String::new(), format!("{key} {asked} is asked for in [image], and the lock has {locked}")));
        }
    }
}
