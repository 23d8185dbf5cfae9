//! One `pip install` of a RUN: takes its words, gives what is installed from where, requirements files included.

use std::ops::Range;

use crate::dockerfile::{PIP_VALUED, Variables, Word, pip_install};
use crate::python::{Extra, PackageName, Requirement, WheelName};

/// The most requirements files of a command that are read, those that they name among them.
const MOST_FILES: usize = 32;

/// One `pip install`.
#[derive(Default)]
pub struct Install {
    /// What is named on its command line, with places.
    pub requirements: Vec<(Requirement, Range<usize>)>,
    /// Wheels by their address, with places: what each is.
    pub wheels: Vec<(Requirement, Range<usize>)>,
    /// What stands in the files of `-r` that can be read, at the place where the file is named.
    pub listed: Vec<(Requirement, Range<usize>)>,
    /// `--index-url`.
    pub index: Option<String>,
    /// `--extra-index-url`.
    pub extra: Vec<String>,
    /// Files of `-r`, and those that they name, with the place where the first one is named.
    pub files: Vec<(String, Range<usize>)>,
    /// `--require-hashes`.
    pub hashes: bool,
    /// Files of `-c`.
    pub constraints: Vec<String>,
    /// `--find-links`.
    pub links: Vec<String>,
    /// `--torch-backend` of uv: it takes torch from the index of that build, whatever else is said.
    pub backend: Option<String>,
    /// Something else decides where packages come from, or which: a constraint, a mirror.
    pub unclear: bool,
    /// It builds what is here or in a repository, which may read any variable.
    pub builds: bool,
}

impl Install {
    /// Reads a command, which sees `variables`, the nearest first; `None` where it is no `pip install`. `beside` gives the
    /// text of a requirements file, where it can be read.
    pub fn read(words: &[Word], variables: [&Variables; 2], beside: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let mut install = Self::default();
        let first = pip_install(words)?;
        if words[first..].iter().any(|word| word.text == "--dry-run") {
            return None;
        }
        install.take(&words[first..]);
        let is_uv = words[..first].iter().any(|word| word.text.rsplit('/').next() == Some("uv"));
        let own = words[..first].iter().filter_map(|word| word.text.split_once('='));
        let of_stage = variables.into_iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()));
        let (links, is_read) = (install.links.is_empty(), |name: &str| is_uv || name != "UV_TORCH_BACKEND");
        own.chain(of_stage).filter(|(name, _)| is_read(name)).for_each(|(name, value)| install.set(name, value, links));
        let (named, mut at) = (install.files.len(), 0);
        while let Some((path, span)) = install.files.get(at).cloned() {
            at += 1;
            let Some(text) = beside(&path).filter(|_| at <= MOST_FILES) else {
                // What a file names and is not here may say anything.
                install.unclear |= at > named;
                continue;
            };
            // Lines of a file are a command line of their own, at the place where the file is named.
            let mut file = Self::default();
            for line in lines(&text) {
                let option = line.starts_with('-');
                let words = if option { line.split_whitespace().collect() } else { vec![requirement(&line)] };
                let word = |text: &str| Word { text: text.to_owned(), span: span.clone() };
                file.take(&words.into_iter().map(word).collect::<Vec<_>>());
            }
            install.listed.extend(file.requirements.into_iter().chain(file.wheels));
            install.index = install.index.or(file.index);
            install.extra.extend(file.extra);
            install.links.extend(file.links);
            install.unclear |= file.unclear;
            install.builds |= file.builds;
            // A file names others as seen from its own folder.
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let others = file.files.into_iter().map(|(other, span)| match (folder, other.starts_with('/')) {
                ("", _) | (_, true) => (other, span),
                _ => (format!("{folder}/{other}"), span),
            });
            let others: Vec<_> =
                others.filter(|(other, _)| install.files.iter().all(|(one, _)| one != other)).collect();
            install.files.extend(others);
        }
        Some(install)
    }

    /// The requirement of a package.
    pub fn of(&self, package: &str) -> Option<&(Requirement, Range<usize>)> {
        self.requirements
            .iter()
            .chain(&self.wheels)
            .chain(&self.listed)
            .find(|(one, _)| one.package.as_str() == package)
    }

    /// Takes a variable that pip or uv reads; what stands on the command line wins.
    fn set(&mut self, name: &str, value: &str, links: bool) {
        match name {
            _ if value.is_empty() => {}
            "PIP_INDEX_URL" | "UV_INDEX_URL" | "UV_DEFAULT_INDEX" => {
                self.index.get_or_insert_with(|| value.to_owned());
            }
            "PIP_EXTRA_INDEX_URL" | "UV_EXTRA_INDEX_URL" | "UV_INDEX" if self.extra.is_empty() => {
                self.extra.push(value.to_owned());
            }
            "UV_TORCH_BACKEND" => {
                self.backend.get_or_insert_with(|| value.to_owned());
            }
            "PIP_FIND_LINKS" | "UV_FIND_LINKS" if links => self.links.push(value.to_owned()),
            "PIP_CONSTRAINT" | "UV_CONSTRAINT" => {
                self.constraints.extend(value.split_whitespace().map(str::to_owned));
                self.unclear = true;
            }
            "PIP_NO_INDEX" | "UV_NO_INDEX" | "PIP_CONFIG_FILE" | "UV_CONFIG_FILE" => self.unclear = true,
            _ => {}
        }
    }

    fn take(&mut self, words: &[Word]) {
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let (option, inline) = match word.text.split_once('=').filter(|_| word.text.starts_with("--")) {
                Some((option, value)) => (option, Some((value.to_owned(), word.span.clone()))),
                None => (word.text.as_str(), None),
            };
            let mut value = || {
                let next = || rest.next().map(|word| (word.text.clone(), word.span.clone()));
                inline.clone().or_else(next).unwrap_or_else(|| (String::new(), word.span.clone()))
            };
            match option {
                "-i" | "--index-url" | "--default-index" => self.index = Some(value().0),
                "--extra-index-url" | "--index" => self.extra.push(value().0),
                "-f" | "--find-links" => self.links.push(value().0),
                "--torch-backend" => self.backend = Some(value().0),
                "-c" | "--constraint" => {
                    self.constraints.push(value().0);
                    self.unclear = true;
                }
                "--index-strategy" => {
                    drop(value());
                    self.unclear = true;
                }
                "--no-index" => self.unclear = true,
                "-r" | "--requirement" => self.files.push(value()),
                "--require-hashes" => self.hashes = true,
                "-e" | "--editable" => {
                    drop(value());
                    self.builds = true;
                }
                option if PIP_VALUED.contains(&option) => drop(value()),
                option if option.starts_with(['-', '<', '>']) => {}
                requirement => match requirement.parse::<Requirement>() {
                    Ok(requirement) => self.requirements.push((requirement, word.span.clone())),
                    Err(_) => match wheel(requirement) {
                        Some(wheel) => self.wheels.push((wheel, word.span.clone())),
                        None if requirement.contains("://") && requirement.ends_with(".whl") => {}
                        None => self.builds = true,
                    },
                },
            }
        }
    }
}

/// What a wheel is, by its address.
fn wheel(address: &str) -> Option<Requirement> {
    let (_, path) = address.split_once("://")?;
    let file = path.split(['#', '?']).next()?.rsplit('/').next()?;
    let file = percent_encoding::percent_decode_str(file).decode_utf8().ok()?;
    let wheel: WheelName = file.parse().ok()?;
    format!("{}=={}", wheel.package, wheel.version).parse().ok()
}

/// The lines of a requirements file: continued ones as one, without comments and empty ones.
fn lines(text: &str) -> impl Iterator<Item = String> {
    let joined = text.replace("\r\n", "\n").replace("\\\n", " ");
    let lines: Vec<String> = joined
        .lines()
        // A `#` inside a word is part of an address.
        .map(|line| if line.trim_start().starts_with('#') { "" } else { line.split(" #").next().unwrap_or_default() })
        .map(|line| line.trim().to_owned())
        .collect();
    lines.into_iter().filter(|line| !line.is_empty())
}

/// A line's requirement, without the options that follow it.
fn requirement(line: &str) -> &str {
    line.split(" --").next().unwrap_or_default().trim_end()
}

/// The names of packages in a requirements file with their extras, as far as they can be read.
pub fn packages(text: &str) -> Vec<(PackageName, Vec<Extra>)> {
    let name = |line: String| {
        if let Ok(asked) = requirement(&line).parse::<Requirement>() {
            return Some((asked.package, asked.extras));
        }
        let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(line.len());
        Some((line[..end].parse().ok()?, Vec::new()))
    };
    lines(text).filter(|line| !line.starts_with('-')).filter_map(name).collect()
}
